"""Handlers that are taken off again."""

from __future__ import annotations

from li_programs import ANSWER, QUESTION, engine, token_by_token


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
