from __future__ import annotations

import dataclasses
from concurrent.futures import ThreadPoolExecutor

import pytest

from ragspan.judges.overlap.analysis import RecentAnalyses


def test_the_questions_of_one_record_share_one_analysis(record_of):
    recent, record = RecentAnalyses(), record_of("It opened in 1889.")

    assert recent.of(record) is recent.of(record)


def test_a_record_is_known_by_identity_and_not_by_its_id(record_of):
    record = record_of("It opened in 1889.")
    other = dataclasses.replace(record, response="It opened in 1793.")
    recent = RecentAnalyses()

    assert recent.of(other).claims != recent.of(record).claims


def test_contexts_that_come_again_with_another_record_are_not_read_again(record_of):
    recent = RecentAnalyses()
    first, second = recent.of(record_of("It opened in 1889.")), recent.of(record_of("It is tall."))

    assert [one is other for one, other in zip(first.contexts, second.contexts, strict=True)] == [True, True]


def test_grades_are_worked_out_once(record_of):
    analysis = RecentAnalyses().of(record_of("It opened in 1889."))

    assert analysis.grades is analysis.grade([claim.text for claim in analysis.claims])


def test_only_the_last_few_records_are_kept(record_of):
    recent = RecentAnalyses(max_records=3)
    records = [record_of(f"It opened in {year}.") for year in range(10)]
    analyses = [recent.of(record) for record in records]

    assert len(recent) == 3
    assert [recent.of(record) for record in records[-3:]] == analyses[-3:]
    assert recent.of(records[0]) is not analyses[0]


def test_large_records_push_out_others_and_the_last_is_kept_whatever_its_size(record_of):
    recent = RecentAnalyses(max_bytes=10_000)
    small, large = record_of("It opened in 1889."), record_of("It opened.", contexts=["long " * 10_000])

    recent.of(small)
    analysis = recent.of(large)

    assert len(recent) == 1
    assert recent.of(large) is analysis


def test_threads_get_the_analysis_of_their_own_record(record_of):
    recent = RecentAnalyses(max_records=4)
    records = [record_of(f"The number is {number}.") for number in range(8)] * 25

    with ThreadPoolExecutor(8) as pool:
        analyses = list(pool.map(recent.of, records))

    assert all(analysis.record is record for analysis, record in zip(analyses, records, strict=True))
    assert len(recent) <= 4


@pytest.mark.parametrize("contexts", [None, (), ("",)])
def test_a_record_without_passages_has_an_analysis(record_of, contexts):
    analysis = RecentAnalyses().of(record_of("It opened in 1889.", contexts=contexts, question=None))

    assert 0 < analysis.grounding < 0.5
    assert analysis.coverage().share == 0
    assert analysis.shared() == [0.0] * len(contexts or ())
