"""A judge that is asked about a share of a table's rows, through the real client; the embedded judge reads all rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from doubtful import some_answers
from result_lines import result_lines

from ragspan.evaluate import ResultFile, evaluate
from ragspan.evaluate.gates import Gate, check_gates
from ragspan.evaluate.label_agreement import agreement
from ragspan.evaluate.report import show_failing
from ragspan.evaluate.rows import RowWriter, partial_of
from ragspan.exceptions import ConfigurationError
from ragspan.judges import OverlapJudge
from ragspan.metrics import ContextAdherence

METRICS = "context_adherence,completeness,context_utilization,faithfulness"


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch):
    monkeypatch.setenv("RAGSPAN_JUDGING", "thread")


def by_row(evaluation, metric="context_adherence"):
    return {one.row: one for one in result_lines(evaluation) if one.metric == metric}


def test_the_judge_is_asked_about_its_share_and_all_metrics_of_a_row_are(asked_judge, endpoint):
    evaluation = evaluate(some_answers(120), METRICS, judge=asked_judge, judge_share=0.2)

    found = by_row(evaluation)
    reasons = Counter(one.asked for one in found.values())
    assert 12 < reasons["doubtful"] + reasons["random"] < 36
    assert len(endpoint.requests) == 120 - reasons[None]
    assert list(evaluation.to_pandas()["completeness_judge"]) == [one.judge for one in found.values()]
    for one in result_lines(evaluation):
        assert one.judge == ("openai:m" if one.asked else "overlap")
        assert (one.screen_score is not None) == bool(one.asked)


def test_averages_are_by_judge_and_the_rate_is_estimated_and_gates_go_by_it(asked_judge):
    answers = some_answers(600, chances=(80, 10, 4, 3, 2, 1))
    evaluation = evaluate(answers, [ContextAdherence(asked_judge, polls=1)], judge_share=0.3)

    summary = evaluation.summary["context_adherence"]
    true = sum(one.record_id[-1] != "0" for one in answers) / 600
    asked = summary.asked
    assert (summary.scored, asked.judge, asked.failures.answers) == (600, "openai:m", 600)
    assert 140 < asked.scored == asked.failures.labels < 220
    assert asked.failures.lower <= true <= asked.failures.upper
    assert abs(asked.failures.value - true) < 0.06
    embedded = evaluate(answers, [ContextAdherence(OverlapJudge())]).summary["context_adherence"]
    assert (summary.mean, summary.passed, summary.median) == (embedded.mean, embedded.passed, embedded.median)
    shown = str(evaluation)
    assert "600 rows evaluated: 600 by overlap" in shown
    assert "(some by more than one)" in shown
    assert "Asked about 30% of them, the most doubtful ones and 7.5% at random, openai:m says:" in shown
    assert f"context_adherence: {asked.failures.value:.1%} of all rows fail by openai:m, estimated" in shown

    gates = [Gate(metric="context_adherence", kind=kind, minimum=1.0) for kind in ("mean", "passing", "none_below")]
    mean, passing, lowest = check_gates(evaluation, gates)
    assert mean.trouble.endswith("by the embedded judge")
    assert f"by openai:m, estimated from {asked.scored} of 600 rows" in passing.trouble
    assert passing.reached == 1 - asked.failures.value
    assert "95 % interval" in passing.trouble
    assert lowest.trouble.endswith("by the embedded judge")


def test_labels_and_failing_answers_are_compared_with_one_judge_only(asked_judge):
    rows = [
        {"id": f"r{at}", "question": one.question, "contexts": [text.text for text in one.contexts]}
        | {"answer": one.response, "label": "pass" if one.record_id[-1] == "0" else "fail"}
        for at, one in enumerate(some_answers(120))
    ]
    mixed = evaluate(rows, "context_adherence", judge=asked_judge, judge_share=0.2, label_column="label")
    embedded = evaluate(rows, "context_adherence", judge=OverlapJudge(), label_column="label")

    assert any(row.failing and row.asked for row in mixed.all_rows())
    found, alone = agreement(mixed), agreement(embedded)
    assert (found.metrics, found.failures) == (alone.metrics, alone.failures)
    assert "context_adherence by the embedded judge alone fails" in found.rate_in_words
    assert "embedded" not in alone.rate_in_words
    assert (mixed.failing, mixed.labelled) == (embedded.failing, embedded.labelled)
    assert show_failing(mixed)["documents"] == show_failing(embedded)["documents"]


def test_with_few_rows_at_random_a_gate_goes_by_the_embedded_judge_and_says_so(asked_judge):
    unknown = replace(some_answers(1)[0], contexts=None)
    evaluation = evaluate([*some_answers(60), unknown], [ContextAdherence(asked_judge)], judge_share=0.2)

    assert evaluation.to_pandas()["context_adherence_judge"].isna().sum() == 1
    (result,) = check_gates(evaluation, [Gate(metric="context_adherence", kind="passing", minimum=1.0)])
    summary = evaluation.summary["context_adherence"]
    assert result.reached == summary.passed / summary.labelled
    assert "by the embedded judge: openai:m scored too few rows at random for an estimate" in result.trouble
    assert "no estimate for all rows, which takes 20 at random" in str(evaluation)


# Resumed, failed, too dear


def test_a_resumed_run_keeps_why_rows_were_asked_about_and_pays_for_none_twice(
    asked_judge, endpoint, tmp_path, monkeypatch
):
    answers, output, written = some_answers(60), tmp_path / "out.jsonl", []

    def add(self, done, before=RowWriter.add):
        before(self, done)
        written.append(done)
        if len(written) == 30:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(RowWriter, "add", add)
        with pytest.raises(KeyboardInterrupt):
            evaluate(answers, METRICS, judge=asked_judge, judge_share=0.2, output=output)
    asked_before = {row.row: row.asked for row in ResultFile(partial_of(output)).rows()}
    endpoint.requests.clear()
    again = by_row(evaluate(answers, METRICS, judge=asked_judge, judge_share=0.2, output=output, resume=True))

    assert len(asked_before) == 30
    assert {row: again[row].asked for row in asked_before} == asked_before
    assert len(endpoint.requests) == sum(one.asked is not None for row, one in again.items() if row > 30)


def test_rows_that_the_judge_failed_on_keep_the_embedded_judges_score_and_are_asked_about_again(
    asked_judge, endpoint, tmp_path
):
    answer, output = endpoint.answer, tmp_path / "out.jsonl"
    endpoint.answer = lambda request: endpoint.fails(400, "no")
    failed = evaluate(some_answers(40), METRICS, judge=asked_judge, judge_share=0.2, output=output)
    endpoint.answer = answer
    again = evaluate(some_answers(40), METRICS, judge=asked_judge, judge_share=0.2, output=output, resume=True)

    asked = failed.summary["context_adherence"].asked
    fallbacks = sum(asked.fallbacks.values())
    assert (asked.scored, failed.summary["context_adherence"].scored) == (0, 40)
    assert fallbacks > 0
    assert (failed.is_scored, failed.failing > 0) == (False, True)
    assert failed.why_not_scored.endswith(f" {fallbacks}")
    assert "Asked about 20% of them, the most doubtful ones and 5% at random, the judge says:" in str(failed)
    (result,) = check_gates(failed, [Gate(metric="faithfulness", kind="mean", minimum=0.0)])
    assert "nothing was scored" in result.trouble
    assert again.summary["context_adherence"].asked.scored == fallbacks
    assert not partial_of(output).exists()


@pytest.mark.parametrize("share", [0, 1.5, "a fifth"])
def test_a_share_that_is_none_is_refused_before_the_table_is_read(asked_judge, share):
    with pytest.raises(ConfigurationError, match="judge_share is"):
        evaluate("nowhere.csv", METRICS, judge=asked_judge, judge_share=share)
