"""What a notebook shows of records, outcomes and evaluations."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

from ragspan import MetricFailure, NotApplicable, RagRecord, Score, ScoredRecord
from ragspan.evaluate import evaluate
from ragspan.testing import FakeJudge

HOSTILE = "</td></table><script>alert(1)</script><img src=x onerror=alert(1)>\ud800"


class Shown(HTMLParser):
    """The words, the tags and the attributes of a piece of HTML."""

    def __init__(self, thing):
        super().__init__(convert_charrefs=True)
        self.words, self.tags, self.attributes = "", [], set()
        self.source = thing._repr_html_()
        self.feed(self.source)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag):
        self.words += " " if tag in {"td", "th", "strong"} else ""

    def handle_data(self, data):
        self.words += data

    def __contains__(self, words):
        return words in " ".join(self.words.split())


def a_record(text="It rains.", **more):
    return RagRecord(question=text, contexts=[text] * 5, response=text, record_id="r1", name="chain", **more)


SCORE = Score(value=0.25, threshold=0.5, explanation=HOSTILE, judge="overlap")


def test_a_record_is_its_texts():
    shown = Shown(a_record(status="aborted"))

    assert "chain r1 · aborted question It rains. context 1 of 5 It rains." in shown
    assert "context 3 of 5 It rains. response It rains." in shown
    assert "context 4" not in shown


def test_outcomes_say_what_came_of_a_metric():
    assert "Score 0.25 ✗ fail explanation Because. passes from 0.50 judge overlap" in Shown(
        Score(value=0.25, threshold=0.5, explanation="Because.", judge="overlap")
    )
    assert "Score 0.25" in Shown(Score(value=0.25))
    assert "not applicable: no_contexts" in Shown(NotApplicable(reason="no_contexts"))
    assert "failed: timeout message too slow" in Shown(MetricFailure(error_type="timeout", message="too slow"))


def test_a_scored_record_has_both():
    outcomes = {"faithfulness": Score(value=1.0, threshold=0.8), "own": NotApplicable(reason="too_short")}
    shown = Shown(ScoredRecord(record=a_record(), outcomes=outcomes))

    assert "response It rains. faithfulness 1.00 ✓ pass own not applicable: too_short" in shown


def test_an_evaluation_is_its_summary():
    rows = [{"question": "q", "contexts": ["c"], "answer": "c"}, {"question": "q", "contexts": ["c"], "answer": None}]
    evaluation = evaluate(rows, "faithfulness", judge=FakeJudge())
    shown = Shown(evaluation)

    assert "Evaluation: 2 rows, 1 skipped metric mean median min max std scored passed not scored" in shown
    assert "faithfulness 1.000 1.000 1.000 1.000 - 1 100% no_response 1" in shown
    assert "faithfulness 1.00 ✓ pass" in Shown(evaluation.worst_by("faithfulness")[0])


@pytest.mark.parametrize(
    "thing",
    [
        a_record(HOSTILE),
        SCORE,
        NotApplicable(reason=HOSTILE, detail=HOSTILE),
        MetricFailure(error_type=HOSTILE, message=HOSTILE),
        ScoredRecord(record=a_record(HOSTILE), outcomes={HOSTILE: SCORE}),
        evaluate([a_record(HOSTILE)], "faithfulness", judge=FakeJudge()).worst_by("faithfulness")[0],
    ],
    ids=lambda thing: type(thing).__name__,
)
def test_text_stays_text_and_colours_are_the_pages_own(thing):
    shown = Shown(thing)

    assert "<script>alert(1)</script><img src=x onerror=alert(1)>?" in shown
    assert set(shown.tags) <= {"div", "strong", "table", "tr", "th", "td", "span"}
    assert shown.attributes <= {"style", "dir"}
    assert shown.source.encode()
    assert "color:" not in shown.source.replace("color:inherit", "")
