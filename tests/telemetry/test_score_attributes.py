from __future__ import annotations

import pytest

from ragspan.judges.judge_protocols import ClaimVerdict
from ragspan.outcomes import Cause, Score, ScoredRecord, ScreenScore
from ragspan.usage import Usage


def attributes_of(telemetry, name="invoke_workflow rivers"):
    return dict(telemetry.span(name).attributes)


def test_the_cause_of_a_failing_answer_is_an_attribute_and_its_place_is_told_without_quotes(
    telemetry, make_record, answer
):
    lost = Cause(kind="lost_before_prompt", claim="SECRET", document=7, search="store", step="CohereRerank")
    verdicts = (ClaimVerdict(index=0, verdict="unsupported", claim="SECRET"),)
    score = Score(value=0.0, threshold=0.8, causes=(lost,), evidence=verdicts, explanation="SECRET")
    answer(telemetry.emitter(explanations=None), make_record(), {"m": score})

    attributes = attributes_of(telemetry)
    assert attributes["ragspan.cause.m"] == "lost_before_prompt"
    assert attributes["ragspan.explanation.m"] == (
        "Document 7 of store, which CohereRerank dropped, supports a claim that the contexts do not. "
        "1 of 1 claims unsupported: claim 1"
    )
    assert "SECRET" not in str(attributes)


ASKED = Score(
    value=0.0,
    threshold=0.8,
    judge="gpt",
    screen=ScreenScore(value=0.4, label="fail", judge="overlap"),
    usage=Usage(requests=1),
)


def test_the_histogram_has_the_scores_of_each_judge_by_themselves(telemetry, make_record):
    emitter = telemetry.emitter()
    alone = Score(value=1.0, threshold=0.8, judge="overlap")
    failed = Score(value=0.2, threshold=0.8, judge="overlap", fallback="timeout", usage=Usage(requests=1))
    for outcome, asked in ((ASKED, "doubtful"), (alone, None), (failed, "random")):
        scored = ScoredRecord(record=make_record(), outcomes={"m": outcome}, asked=asked)
        emitter.start(make_record()).finish(scored)

    found = {
        (point.attributes["ragspan.judge"], point.attributes.get("ragspan.asked")): (point.count, point.sum)
        for label in ("pass", "fail")
        for point in telemetry.points("ragspan.score")
        if point.attributes["gen_ai.evaluation.score.label"] == label and (label == "fail" or point.sum)
    }
    assert found["gpt", "doubtful"] == (1, 0.0)
    assert found["overlap", None] == (2, pytest.approx(0.6))
    assert sum(point.count for point in telemetry.points("ragspan.score")) == 4
