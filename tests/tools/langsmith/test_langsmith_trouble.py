"""Feedback on its way to a LangSmith that is there, not there, slow, or of another mind."""

from __future__ import annotations

from waiting import until
from writer_law import PATIENCE, WriterLaw

from ragspan.outcomes import Score
from ragspan.records import SpanAnchor

OTHER = SpanAnchor(trace_id=0xA1, span_id=0xB3)


class TestTrouble(WriterLaw):
    pass


def test_a_server_that_refuses_a_known_id_has_its_feedback_changed(server, deliver, make_scored):
    server.refuses_known_ids = True
    for score in (Score(value=0.25, threshold=0.5, explanation="bad"), Score(value=0.75, threshold=0.5)):
        deliver(make_scored({"faithfulness": score}), explanations=True)

    (feedback,) = server.feedback.values()
    assert (feedback["score"], feedback["value"], feedback["comment"]) == (0.75, "pass", None)


def test_feedback_waits_for_its_run(server, make_writer, make_scored, caplog):
    writer = make_writer()
    writer.emit(make_scored({"early": Score(value=0.5)}, span=OTHER))

    until(lambda: server.requests)
    server.runs.add("00000000-0000-0000-0000-0000000000b3")
    assert writer.flush(PATIENCE)
    assert (set(server.scores), caplog.messages) == ({"early"}, [])


def test_a_project_is_looked_up_once_and_waited_for(server, make_writer, make_scored, caplog):
    project_id = server.projects.pop("support")
    writer = make_writer(project="support")
    writer.emit(make_scored(record_id="record-1"))
    until(lambda: server.requests)

    server.projects["support"] = project_id
    writer.emit(make_scored(record_id="record-2"))
    assert writer.flush(PATIENCE)
    looked_up = len([request for request in server.requests if request.path == "/sessions"])
    writer.emit(make_scored(record_id="record-3"))
    assert writer.flush(PATIENCE)
    assert len([request for request in server.requests if request.path == "/sessions"]) == looked_up
    assert {feedback["session_id"] for feedback in server.feedback.values()} == {project_id}
    assert caplog.messages == []
