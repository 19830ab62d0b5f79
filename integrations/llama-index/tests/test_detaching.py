"""Handlers that are taken off again."""

from __future__ import annotations

import pytest
from li_programs import ANSWER, QUESTION, engine, token_by_token
from llama_index_instrumentation import get_dispatcher
from llama_index_instrumentation.span_handlers import NullSpanHandler


def test_nothing_is_recorded_afterwards(captured):
    captured.handler.detach()
    engine().query(QUESTION)

    assert captured.records() == []


def test_it_may_be_done_again(captured):
    captured.handler.detach()
    captured.handler.detach()

    assert captured.handler.open_spans == 0


def test_only_our_own_handler_goes(captured):
    other = NullSpanHandler()
    get_dispatcher().add_span_handler(other)
    try:
        engine().query(QUESTION)
        captured.handler.detach()
        assert other in get_dispatcher().span_handlers
    finally:
        root = get_dispatcher()
        root.span_handlers = [handler for handler in root.span_handlers if handler is not other]


def test_handlers_that_come_later_are_told_first(captured):
    """They look for the framework's own streams, which ours replaces."""
    other = NullSpanHandler()
    root = get_dispatcher()
    root.add_span_handler(other)
    try:
        engine().query(QUESTION)
        assert root.span_handlers[-2] is other
        assert type(root.span_handlers[-1]).class_name() == "RagspanSpanHandler"
    finally:
        root.span_handlers = [handler for handler in root.span_handlers if handler is not other]


def test_another_handler_of_the_same_sink_goes_on(captured, new_captures):
    other = new_captures(captured.sink)
    captured.handler.detach()
    engine().query(QUESTION)

    assert other.record().question == QUESTION


@token_by_token
def test_an_open_stream_goes_on_and_is_not_recorded(captured):
    stream = engine(streaming=True).query(QUESTION).response_gen
    first = next(stream)
    captured.handler.detach()

    assert first + "".join(stream) == ANSWER
    assert captured.records() == []
    assert captured.handler.open_spans == 0


@pytest.mark.parametrize("streaming", [False, True])
def test_attached_again_it_records_once(captured, new_captures, streaming):
    captured.handler.detach()
    again = new_captures(captured.sink)
    str(engine(streaming=streaming).query(QUESTION))

    assert [record.question for record in again.records()] == [QUESTION]
