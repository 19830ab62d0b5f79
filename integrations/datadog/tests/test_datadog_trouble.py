"""Evaluations on their way to a Datadog that is there, not there, slow, or of another mind."""

from __future__ import annotations

from writer_law import PATIENCE, WriterLaw

from ragspan.outcomes import Score


class TestTrouble(WriterLaw):
    test_a_second_scoring_of_a_record_replaces_the_first = None  # Datadog has nothing that replaces an evaluation


def test_an_evaluation_that_is_sent_twice_says_the_same_twice(server, make_writer, make_scored):
    for _ in range(2):
        writer = make_writer()
        writer.emit(make_scored())
        assert writer.flush(PATIENCE)

    assert len(server.evaluations) == 2
    assert server.number_of_scores == 1


def test_an_evaluation_that_is_refused_costs_the_others_nothing(server, make_writer, make_scored):
    server.refused = {"refused"}
    writer = make_writer()
    writer.emit(make_scored({name: Score(value=0.5) for name in ("a", "b", "refused", "c", "d")}))

    assert writer.flush(PATIENCE)
    assert sorted(metric["label"] for metric in server.evaluations) == ["a", "b", "c", "d"]
    assert writer.stats().rejected == {"http_400": 1}


def test_a_request_that_is_too_large_is_halved(server, make_writer, make_scored):
    server.limit = 3_000
    writer = make_writer(explanations=True)
    writer.emit(make_scored({f"metric_{n}": Score(value=0.5, explanation="word " * 100) for n in range(9)}))

    assert writer.flush(PATIENCE)
    assert len(server.evaluations) == server.number_of_scores == 9
