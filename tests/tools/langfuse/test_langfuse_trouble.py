"""Scores on their way to a Langfuse that is there, not there, slow, or of another mind."""

from __future__ import annotations

import pytest
from writer_law import PATIENCE, WriterLaw

from ragspan.outcomes import Score


class TestTrouble(WriterLaw):
    pass


@pytest.mark.parametrize("status", [500, 401, 408, 429])
def test_an_event_that_failed_for_the_moment_is_sent_again(server, deliver, make_scored, status):
    server.version = 3

    def failing(request):
        ids = [event["id"] for event in request.content["batch"]]
        server._take_events({"batch": request.content["batch"][1:]})
        return 207, {
            "successes": [{"id": each, "status": 201} for each in ids[1:]],
            "errors": [{"id": ids[0], "status": status}],
        }

    server.script.extend([None, failing])
    deliver(make_scored({name: Score(value=0.5) for name in "abc"}))

    assert set(server.scores) == {"a", "b", "c"}
    assert [len(request.content["batch"]) for request in server.requests[1:]] == [3, 1]


def test_a_server_that_takes_no_lists_is_asked_for_one_once(server, make_writer, make_scored):
    server.version = 3
    writer = make_writer()
    for record_id in ("record-1", "record-2"):
        writer.emit(make_scored(record_id=record_id))
        assert writer.flush(PATIENCE)

    paths = [request.path.rpartition("/")[2] for request in server.requests]
    assert paths == ["scores", "ingestion", "ingestion"]
