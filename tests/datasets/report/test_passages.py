from __future__ import annotations

import pytest

from ragspan import RetrievedContext, Score
from ragspan.datasets.report.passages import PASSAGES_SHOWN, show_passages
from ragspan.judges.base import ContextVerdict
from ragspan.metrics import JudgedContext


def useful(*flags):
    verdicts = (ContextVerdict(index=index, useful=flag, explanation="because") for index, flag in enumerate(flags))
    return Score(value=0.5, evidence=tuple(verdicts))


def judged(*values):
    items = (JudgedContext(index=index, id=None, rank=None, value=value) for index, value in enumerate(values))
    return Score(value=0.5, evidence=tuple(items))


def shown(count, outcomes, **more):
    contexts = [RetrievedContext(text=f"text {index}") for index in range(count)]
    return show_passages(contexts, outcomes, room=10_000, **more)


def words(passage):
    return [finding.words for finding in passage.findings]


def test_useful_passages_are_marked_and_the_others_are_not():
    first, second = shown(2, {"context_utilization": useful(True, False)})

    assert (first.is_useful, words(first), first.findings[0].explanation) == (True, ["useful"], "because")
    assert (second.is_useful, words(second)) == (False, ["not used"])


def test_without_a_verdict_a_passage_is_neither():
    (passage,) = shown(1, {"faithfulness": Score(value=1.0)})

    assert passage.is_useful is None


@pytest.mark.parametrize(
    ("metric", "value", "told"),
    [
        ("chunk_attribution", 1.0, "useful"),
        ("chunk_attribution", 0.0, "not used"),
        ("context_relevance", 0.5, "relevance 0.50"),
        ("chunk_utilization", 0.25, "25% of its text used"),
        ("my_metric", 0.25, "my_metric 0.25"),
    ],
)
def test_each_metric_tells_what_it_found_in_its_own_words(metric, value, told):
    (passage,) = shown(1, {metric: judged(value)})

    assert words(passage) == [told]


def test_two_metrics_that_found_the_same_say_it_once():
    (passage,) = shown(1, {"context_utilization": useful(True), "chunk_attribution": judged(1.0)})

    assert words(passage) == ["useful"]


def test_of_many_passages_the_useful_ones_are_kept_in_their_places():
    flags = [False] * 30
    flags[28] = True

    found = shown(30, {"context_utilization": useful(*flags)})

    assert len(found) == PASSAGES_SHOWN
    assert [passage.number for passage in found] == [*range(1, PASSAGES_SHOWN), 29]


def test_a_passage_has_its_name_and_its_place_in_the_ranking():
    context = RetrievedContext(text="text", id="17", source="guide.md", rank=4, truncated=True)

    (passage,) = show_passages([context], {}, room=100)

    assert (passage.name, passage.rank, passage.is_partial) == ("guide.md", 5, True)


def test_passages_share_the_room():
    contexts = [RetrievedContext(text="a" * 10), RetrievedContext(text="b" * 5_000)]

    short, long = show_passages(contexts, {}, room=1_000)

    assert short.text.omitted == 0
    assert long.text.omitted == 5_000 - 990
