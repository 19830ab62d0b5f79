"""The report's page and its plots, as a browser reads them."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import time
from dataclasses import replace
from importlib.metadata import version

import pytest

from ragspan import MetricFailure, NotApplicable, RetrievedContext, Score
from ragspan.evaluate.gates import Gate, check_gates
from ragspan.evaluate.report import write_report
from ragspan.evaluate.rows import BadRow
from ragspan.evaluate.summaries import MetricSummary
from ragspan.judges.judge_protocols import ClaimVerdict, ContextVerdict
from ragspan.outcomes import Cause
from ragspan.usage import Usage

ABSENT = NotApplicable(reason="no_claims")
HOSTILE = [
    "</script><script>hacked()</script>",
    '"><img src=x onerror=hacked()>',
    "' onmouseover='hacked()",
    "<style>*{background:url(https://evil.example)}</style>",
    "{{ 7 * 7 }} {% raw %}",
    "javascript:hacked()",
    "</title></details><h1>taken over</h1>",
    "&lt;b&gt; &amp;",
]


def everywhere(answered, text):
    """A row with a text in every place that data or a judge can fill."""
    outcomes = {
        f"metric {text}": Score(
            value=0.1,
            threshold=0.5,
            explanation=text,
            judge=text,
            prompt_version=text,
            details={text: 0.5},
            evidence=(
                ClaimVerdict(index=0, verdict="unsupported", claim=text, explanation=text),
                ContextVerdict(index=0, useful=True, explanation=text),
            ),
        ),
        "absent": NotApplicable(reason=text, detail=text),
        "failed": MetricFailure(error_type=text, message=text),
    }
    context = RetrievedContext(text=text, id=text, source=text)
    return answered(1, outcomes, record_id=text, question=text, contexts=[context], response=text)


@pytest.mark.parametrize("text", HOSTILE)
def test_text_from_data_stays_text_in_every_place(text, answered, evaluation_of, page_of):
    hostile = evaluation_of([everywhere(answered, text)], bad_rows=[BadRow(row=2, reason=text)], bad_row_count=1)

    page = page_of(hostile, title=text)

    assert " ".join(text.split()) in page.text
    assert len(page.tags("script")) == 1
    assert [tag for tag, _ in page.elements if tag in ("img", "h1", "style")] == ["style", "h1"]
    assert not [name for _, attributes in page.elements for name in attributes if name.startswith("on")]
    assert all(link.startswith("#") for link in page.attributes("href"))


def test_the_page_loads_nothing_and_runs_the_script_that_its_policy_names(scored, page_of):
    page = page_of(scored("faithfulness", [0.2, 0.9]))

    (script,) = re.findall(r"<script>(.*?)</script>", page.source, re.DOTALL)
    (policy,) = [
        meta["content"] for meta in page.tags("meta") if "content-security" in meta.get("http-equiv", "").lower()
    ]
    assert f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'" in policy
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == rules["form-action"] == rules["base-uri"] == "'none'"
    assert "connect-src" not in rules  # so it is what default-src says
    assert page.attributes("src") == []
    assert [tag for tag, _ in page.elements if tag in ("link", "iframe", "object", "img", "base")] == []


def test_unprintable_characters_are_made_visible_and_the_page_can_be_encoded(answered, evaluation_of, page_of):
    page = page_of(evaluation_of([everywhere(answered, "nul \x00, esc \x1b, half \ud800, turned \u202e, a\x85, 数🙂")]))

    assert "nul ␀, esc ␛, half \ufffd, turned [U+202E], a\ufffd, 数🙂" in page.text
    assert page.source.encode()


def test_the_head_says_which_run_it_is(answered, evaluation_of, page_of):
    rows = [answered(row, {"a": 0.9, "b": 0.9}) for row in range(1, 40)]
    rows.append(answered(40, {"a": 0.9, "b": ABSENT}))

    usage = Usage(requests=12, input_tokens=900, output_tokens=100, usd=0.5)
    of_file = {"source": "november.csv", "skipped": {"no_response": 2}, "columns": "reading question from 'input'"}
    text = page_of(evaluation_of(rows, usage=usage, **of_file)).text

    assert text.startswith("RAG evaluation of november.csv")
    assert "No answer fails: a 0 of 40 (0%), b 0 of 39 (0%)." in text
    assert "Table november.csv Answers 40 Scored 39 to 40 Skipped no_response 2" in text
    assert "Written 20 November 2026, 21:42 UTC" in text
    assert f"ragspan {version('ragspan')} Metrics a (passes from 0.50), b (passes from 0.50)" in text
    assert "Reading question from 'input'." in text
    assert "12 requests, 1,000 tokens, $0.50" in text
    assert "was interrupted" not in text
    assert "baseline" not in text


def test_the_head_says_what_fails_whether_the_gates_held_and_how_far_to_trust_the_judge(
    answered, evaluation_of, page_of
):
    refusal, unsure = NotApplicable(reason="refusal"), NotApplicable(reason="cannot_tell")
    outcomes = [0.9, 0.9, 0.1, refusal, unsure, NotApplicable(reason="no_contexts")]
    rows = [answered(row, {"faithfulness": outcome}) for row, outcome in enumerate(outcomes, start=1)]
    evaluation = evaluation_of(rows)
    gates = check_gates(
        evaluation,
        [
            Gate(metric="faithfulness", kind="passing", minimum=0.9),
            Gate(metric="faithfulness", kind="mean", minimum=0.1),
        ],
    )
    text = page_of(evaluation, gates=gates).text

    assert "✗ 1 of 6 answers fail at least one metric (17%): faithfulness 1 of 3 (33%)." in text
    assert "✗ gate failed faithfulness should pass 90% of the labelled rows, but passes 2 of 3 (66.7%)" in text
    assert "✓ gate held faithfulness should have a mean of at least 0.1" in text
    assert "Judged by overlap. The embedded judge (overlap) compares words" in text
    assert "label some, and run ragspan agree" in text
    assert "Refusal 1 Unsure 1 Without contexts 1" in text


def test_what_to_do_first_names_the_metric_the_cause_and_the_group(answered, evaluation_of, page_of):
    causes = (Cause(kind="lost_before_prompt"),)
    bad = Score(value=0.1, threshold=0.5, causes=causes)
    rows = [answered(row, {"a": bad if row <= 8 else 0.9, "b": 0.9}) for row in range(1, 31)]
    groups = {
        "source": {
            "wiki": {"a": MetricSummary(metric="a", scored=10, labelled=10, passed=2, threshold=0.5, mean=0.3)},
            "blog": {"a": MetricSummary(metric="a", scored=20, labelled=20, passed=20, threshold=0.5, mean=0.9)},
            "tiny": {"a": MetricSummary(metric="a", scored=2, labelled=2, passed=0, threshold=0.5, mean=0.1)},
        }
    }
    text = page_of(evaluation_of(rows, by_dimension=groups)).text

    assert "Begin with a 8 of 30 answers fail it (27%); no metric fails more." in text
    assert "The commonest cause: lost before prompt 8 of the 8 failing answers whose cause is known" in text
    assert "The worst group: source wiki 8 of its 10 answers fail a (80%), of all answers 27%." in text
    assert "What to do first" not in page_of(evaluation_of([answered(1, {"a": 0.9})])).text


def test_groups_are_listed_with_the_worst_first(answered, evaluation_of, page_of):
    def group(passed, scored=10, **others):
        figures = {"scored": scored, "threshold": 0.5, "mean": 0.5}
        return {
            name: MetricSummary(metric=name, passed=n, labelled=scored, **figures)
            for name, n in {"a": passed, **others}.items()
        }

    groups = {"source": {"blog": group(2, b=9), "tiny": group(0, scored=1), "wiki": group(2, b=3)}}
    text = page_of(evaluation_of([answered(1, {"a": 0.9})], by_dimension=groups)).text

    _, _, table = text.partition("By source source a ")
    assert [table.index(name) for name in ("wiki", "blog", "tiny")] == sorted(
        table.index(name) for name in ("wiki", "blog", "tiny")
    )


def test_the_summary_has_every_figure_and_no_nan(answered, evaluation_of, page_of):
    rows = [answered(1, {"a": 0.25}), answered(2, {"a": 0.75}), answered(3, {"a": ABSENT})]

    page = page_of(evaluation_of(rows))

    assert "a 0.500 0.500 0.250 0.750 0.354 2 1 1 no_claims 1" in page.text
    assert "– nothing scored" in page_of(evaluation_of([answered(1, {"a": ABSENT})])).text
    assert "nan" not in page.text.lower().split()


def test_a_plot_has_every_count_the_quartiles_and_the_threshold(scored, page_of):
    page = page_of(scored("a", [0.05, 0.15, 0.15, 0.95] * 500))

    assert "0.1 to below 0.2: 1,000 answers (50.0%)" in page.text
    assert "half of the scores lie between 0.12 and 0.35" in page.text
    assert "passes from 0.50" in page.text
    assert len(page.source) < 700_000


def test_an_answer_can_be_read_without_scripts(answered, evaluation_of, page_of):
    claims = (ClaimVerdict(index=0, verdict="unsupported", claim="It is green.", explanation="no word of it"),)
    verdicts = (ContextVerdict(index=0, useful=True), ContextVerdict(index=1, useful=False))
    outcomes = {
        "faithfulness": Score(value=0.0, threshold=0.8, evidence=claims, explanation="Not supported: It is green."),
        "context_utilization": Score(value=1.0, threshold=0.5, evidence=verdicts),
        "absent": ABSENT,
    }
    row = answered(7, outcomes, question="What colour is it?", contexts=["Paris.", "Cats."], response="It is green.")

    page = page_of(evaluation_of([row]))

    assert "What colour is it? It is green. Not supported: It is green. faithfulness 0.00 ✗ fail" in page.text
    assert "It is green.1" in page.text
    assert "✗ not supported 1 It is green. no word of it" in page.text
    assert "1 ✓ useful Paris. 2 not used Cats." in page.text
    assert {"class": "unsupported"} in page.tags("mark")
    assert "hidden" in next(form for form in page.tags("form"))  # what only a script can do is not offered
    assert json.loads(page.attributes("data-scores")[0]) == {
        "faithfulness": [0.0, "fail"],
        "context_utilization": [1.0, "pass"],
        "absent": [None, "not scored"],
    }


def test_a_comparison_shows_both_runs_and_where_it_fell(answered, evaluation_of, page_of):
    run = evaluation_of([answered(row, {"a": 0.2}, record_id=f"id {row}") for row in range(1, 6)])
    baseline = evaluation_of([answered(row, {"a": 0.7}, record_id=f"id {row}") for row in range(1, 8)])

    page = page_of(run, baseline=baseline)

    assert "5 answers are in both runs, paired by record id. 0 only in this run, 2 only in the baseline" in page.text
    assert "a 5 0.700 0.200 −0.500 −0.500 to −0.500 worse 5 0" in page.text
    assert "5 answers passed before and fail now." in page.text
    assert "Comparison with the baseline" in page.text
    assert "1 id 1 0.70 0.20 −0.50 pass → fail" in page.text
    assert {"#falls-1", "#row-1"} <= set(page.attributes("href"))
    assert "falls-1" in page.attributes("id")
    assert "a 5 0.200 0.200 0.000 0.000 to 0.000 no clear difference 0 0" in page_of(run, baseline=run).text


# Files ----------------------------------------------------------------------------------------------------------------


def test_a_report_that_cannot_be_made_leaves_the_older_one(scored, evaluation_of, tmp_path):
    def broken():
        raise RuntimeError("the file is gone")

    file = tmp_path / "report.html"
    file.write_text("older", encoding="utf-8")

    with pytest.raises(RuntimeError):
        write_report(scored("faithfulness", [0.2]), file, baseline=evaluation_of([], stream=broken))

    assert [(path.name, path.read_text(encoding="utf-8")) for path in tmp_path.iterdir()] == [("report.html", "older")]


def test_thousands_of_answers_with_long_texts_stay_below_two_megabytes(answered, evaluation_of, tmp_path):
    context = "The tower is three hundred metres tall, and it stands in Paris. " * 60
    steps = {"context_adherence": 3, "completeness": 4, "context_utilization": 5, "faithfulness": 6}
    why = "Not supported: " + context[:300]
    rows = [
        answered(
            row,
            {name: Score(value=row * step % 997 / 997, threshold=0.5, explanation=why) for name, step in steps.items()},
            question=f"How tall is tower number {row}?",
            contexts=[context] * 5,
            response=f"{context} {row}",
        )
        for row in range(1, 3_401)
    ]
    evaluation = evaluation_of(rows)
    file = tmp_path / "report.html"
    write_report(evaluation_of(rows[:1]), file)  # what loads once is loaded

    started = time.process_time()
    write_report(evaluation, file, baseline=evaluation)

    assert time.process_time() - started < 10  # about one second; the machine may have much else to do
    assert 100_000 < file.stat().st_size < 2_000_000


def test_all_failing_answers_are_listed_with_what_they_share(answered, evaluation_of, page_of):
    def row(number):
        record = answered(
            number,
            {"a": 0.1 if number % 5 == 0 else 0.9},
            question=f"When is the {'refund' if number % 5 == 0 else 'invoice'} {number} paid?",
        )
        contexts = [RetrievedContext(text="t", source="fees.pdf" if number % 5 == 0 else f"{number}.pdf")]
        return replace(record, record=replace(record.record, contexts=contexts, metadata={"model": f"m{number % 2}"}))

    evaluation = evaluation_of([row(number) for number in range(1, 101)], by_dimension={"model": {}})
    page = page_of(evaluation)

    listed = [json.loads(groups) for groups in page.attributes("data-groups")]
    assert len(listed) == 20
    assert listed[0] == {
        "metric": ["a"],
        "model": ["m1"],
        "document": ["fees.pdf"],
        "cause": [],
        "judge": ["overlap"],
        "word of the question": ["refund"],
    }
    assert "All 20 answers that fail a metric." in page.text
    assert "Documents that failing answers share document failing answers share fees.pdf 20 20 100%" in page.text
    assert "word failing answers share refund 20 20 100%" in page.text
    (choices,) = page.attributes("data-choices")
    assert json.loads(choices)["model"] == [["m1", 10], ["m0", 10]]


def test_scores_without_a_label_are_counted_and_neither_pass_nor_fail(answered, evaluation_of, page_of):
    rows = [answered(1, {"a": 0.9}), answered(2, {"a": 0.1}), answered(3, {"a": Score(value=0.5, judge="overlap")})]
    text = page_of(evaluation_of(rows)).text

    assert "a 1 of 2 (50%; 1 of 3 answers have no label)" in text
    assert "1 of 2 fail, 50% pass 1 of 3 answers have no label" in text
