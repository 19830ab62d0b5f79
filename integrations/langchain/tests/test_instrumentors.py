"""What other people's instrumentations of LangChain record is the same with and without ragspan.

Each runs where it is installed: OpenInference in all tests, Langfuse and OpenLLMetry in `make test-clients`.
"""

from __future__ import annotations

import logging

import pytest
from captures import CollectingSink
from instrumentors import INSTRUMENTORS, Spans
from neighbour_programs import PROGRAMS
from test_neighbours import is_cut_short, record_of, run

from ragspan_langchain import RagspanCallbackHandler

pytestmark = [
    pytest.mark.slow,
    *(pytest.mark.filterwarnings(f"ignore:{name}:DeprecationWarning") for name in ("astream_events", "astream_log")),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:langfuse"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:opentelemetry"),
]


@pytest.fixture(autouse=True)
def complaints_of_instrumentors_may_be_logged(caplog):
    for name in ("langchain_core.callbacks.manager", "opentelemetry", "langfuse", "openinference"):
        caplog.set_level(logging.CRITICAL, logger=name)


@pytest.mark.parametrize("instrumentor", INSTRUMENTORS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_their_spans_are_the_same(program, instrumentor):
    make = INSTRUMENTORS[instrumentor]
    alone, before, after = CollectingSink(), CollectingSink(), CollectingSink()
    PROGRAMS[program]({"callbacks": [RagspanCallbackHandler(sink=alone)]})
    without = run(program, Spans(make))
    assert without[1], "it hears nothing"

    assert run(program, Spans(make), ours=RagspanCallbackHandler(sink=after)) == without
    assert run(program, Spans(make), ours=RagspanCallbackHandler(sink=before), first=True) == without
    if not is_cut_short(without):
        assert record_of(before) == record_of(after) == record_of(alone)
