"""The handler in LlamaIndex's callback manager, where users know handlers from."""

from __future__ import annotations

import pytest
from captures import Answered
from li_programs import ANSWER, CELLO, HARP, QUESTION, engine, index
from llama_index.core import Settings
from llama_index.core.callbacks import CallbackManager

from ragspan import ConfigurationError
from ragspan_llama_index import RagspanCallbackHandler

COMPLETE = Answered(QUESTION, [CELLO, HARP], ANSWER)


def test_a_manager_that_is_set_before_anything_is_built(captured):
    Settings.callback_manager = CallbackManager([captured.handler])
    index().as_query_engine(similarity_top_k=2).query(QUESTION)

    assert captured.answers() == [COMPLETE]


@pytest.mark.parametrize("count", [2, 3])
def test_several_handlers_with_one_sink(new_captures, captured, count):
    others = [new_captures(captured.sink) for _ in range(count - 1)]
    engine().query(QUESTION)
    assert captured.answers() == [COMPLETE]

    others[0].handler.detach()
    engine().query(QUESTION)
    assert captured.answers() == [COMPLETE]


def test_a_sink_that_takes_no_records_is_refused_at_once():
    with pytest.raises(ConfigurationError, match="sink is 5, but should be a ScoringEngine"):
        RagspanCallbackHandler(sink=5)
