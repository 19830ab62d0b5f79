from __future__ import annotations

import dataclasses

from ragspan.judges.overlap.analysis import Analysis
from ragspan.judges.session import JudgingSession, judging


def test_the_questions_of_one_record_share_one_analysis(judge, record_of):
    record = record_of("It opened in 1889.")
    session = JudgingSession(record=record)

    with judging(session):
        first = judge._analysis(record)
    with judging(session):
        assert judge._analysis(record) is first


def test_a_record_is_known_by_identity_and_not_by_its_id(judge, record_of):
    record = record_of("It opened in 1889.")
    other = dataclasses.replace(record, response="It opened in 1793.")

    assert judge._analysis(other).claims != judge._analysis(record).claims


def test_contexts_that_come_again_with_another_record_are_not_read_again(judge, record_of):
    first, second = judge._analysis(record_of("It opened in 1889.")), judge._analysis(record_of("It is tall."))

    assert [one is other for one, other in zip(first.contexts, second.contexts, strict=True)] == [True, True]


def test_grades_are_worked_out_once(record_of):
    analysis = Analysis(record_of("It opened in 1889."))

    assert analysis.grades is analysis.grade([claim.text for claim in analysis.claims])
