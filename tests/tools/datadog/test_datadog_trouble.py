"""Evaluations on their way to a Datadog that is there, not there, slow, or of another mind."""

from __future__ import annotations

from writer_law import WriterLaw


class TestTrouble(WriterLaw):
    test_a_second_scoring_of_a_record_replaces_the_first = None  # Datadog has nothing that replaces an evaluation


def test_an_evaluation_that_is_sent_twice_says_the_same_twice(server, deliver, make_scored):
    for _ in range(2):
        deliver(make_scored())

    assert len(server.evaluations) == 2
    assert server.number_of_scores == 1
