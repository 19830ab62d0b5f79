"""Tables have time: an outage is waited out, a budget paces, and what failed is judged again."""

from __future__ import annotations

import csv
import json
import time
from types import SimpleNamespace

import pytest
from fakes import FakeJudge

from ragspan import Budget
from ragspan.evaluate import evaluate, scoring
from ragspan.evaluate.rows import partial_of
from ragspan.exceptions import ConfigurationError, JudgeError
from ragspan.judges.llm import requests
from ragspan.judges.session import report_usage, reserve
from ragspan.outcomes import Score
from ragspan.usage import Usage

ROWS = [{"id": f"r{number}", "question": "q", "contexts": ["It rains."], "answer": "It rains."} for number in range(30)]


@pytest.fixture
def quick(monkeypatch):
    """Pauses of hundredths of a second."""
    monkeypatch.setattr(scoring, "_LONGEST_PAUSE", 0.05)
    monkeypatch.setattr(scoring, "_SUSPECT", 0.5)
    monkeypatch.setattr(requests, "_PAUSE", 0.2)


class Flaky:
    """A judge's metric that fails as it is told; `fails` is called with the number of the question, from 1."""

    def __init__(self, fails, name="flaky"):
        self._fails, self.name, self.asked = fails, name, []

    async def score(self, record):
        self.asked.append(record.record_id)
        if error := self._fails(len(self.asked), record.record_id):
            raise error
        return Score(value=1.0, threshold=0.5)


def outage(status=503):
    return JudgeError("InternalServerError", "overloaded", outage=True, status=status)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("error", [outage(), ConnectionRefusedError(), TimeoutError()])
def test_an_outage_costs_no_row(error):
    metric = Flaky(lambda number, _: error if number in range(5, 60) else None)

    assert evaluate(ROWS, [metric]).summary["flaky"].scored == len(ROWS)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(("status", "lost"), [(503, 1), (429, 0)])
def test_a_row_that_the_judge_cannot_take_holds_up_no_other_and_one_that_meets_a_limit_is_asked_again(status, lost):
    begin = []

    def for_a_second(_, row):
        begin.extend([time.monotonic()] * (row == "r3"))
        return outage(status) if row == "r3" and time.monotonic() - begin[0] < 1.2 else None

    metric = Flaky(for_a_second)

    assert evaluate(ROWS, [metric], concurrency=2).summary["flaky"].scored == len(ROWS) - lost


@pytest.mark.usefixtures("quick")
def test_a_judge_that_stays_away_is_waited_for_once_and_not_for_each_row():
    metric = Flaky(lambda number, _: outage() if number > 5 else None)
    began = time.monotonic()

    assert evaluate(ROWS, [metric], patience=1, concurrency=2).summary["flaky"].scored == 5
    assert time.monotonic() - began < 10


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(("answered", "asked"), [(0, 3), (1, 20)])
def test_a_judge_may_be_away_for_90_seconds_and_for_600_once_it_has_answered(clock, monkeypatch, answered, asked):
    monkeypatch.setattr(scoring, "time", SimpleNamespace(monotonic=clock))
    metric = Flaky(lambda number, _: None if number <= answered else clock.advance(30) or outage())
    evaluate(ROWS[: answered + 1], [metric], concurrency=1)

    assert len(metric.asked) == answered + asked


def test_without_patience_an_outage_fails_the_rows_at_once():
    metric = Flaky(lambda number, _: outage() if number > 5 else None)

    assert evaluate(ROWS, [metric], patience=0).summary["flaky"].scored == 5
    assert len(metric.asked) == len(ROWS)
    with pytest.raises(ConfigurationError, match="patience"):
        evaluate(ROWS, [metric], patience=-1)


@pytest.mark.parametrize("status", [401, 402, 403, 404, 407])
def test_a_wrong_key_is_waited_for_by_nobody(status):
    metric = Flaky(lambda *_: JudgeError("AuthenticationError", "HTTP 401: no such key", outage=True, status=status))
    evaluation = evaluate(ROWS, [metric], patience=2)

    assert (len(metric.asked), evaluation.is_scored) == (len(ROWS), False)
    assert evaluation.why_not_scored == "AuthenticationError 30 (HTTP 401: no such key)"


class Paying(FakeJudge):
    """Asks the allowance before it votes, as judges do that cost money."""

    async def vote_adherence(self, record, votes):
        reserve(Usage(requests=1))
        report_usage(Usage(requests=1))
        return await super().vote_adherence(record, votes)


def test_a_budget_for_a_minute_paces_and_drops_no_row():
    budget = Budget(requests_per_minute=600)  # ten a second, once the first six hundred are gone
    rows = [{**ROWS[0], "id": f"r{number}"} for number in range(605)]
    evaluation = evaluate(rows, "context_adherence", judge=Paying(), budget=budget)

    assert evaluation.summary["context_adherence"].scored == 605


def test_what_failed_is_judged_again_and_nothing_else(tmp_path):
    output, whole = tmp_path / "r.jsonl", tmp_path / "whole.jsonl"

    def both(one, other):
        """Metrics that fail on some rows, in a way that time does not change."""
        return [
            Flaky(lambda _, row: JudgeError("InvalidVerdict", "no verdict") if row in one else None, "one"),
            Flaky(lambda _, row: JudgeError("InvalidVerdict", "no verdict") if row in other else None, "other"),
        ]

    evaluate(ROWS, both((), ()), output=whole)
    first = evaluate(ROWS, both(("r3", "r7"), ("r7",)), output=output)
    assert (first.summary["one"].scored, first.has_passing) == (len(ROWS) - 2, True)

    metrics = both(("r7",), ())
    second = evaluate(ROWS, metrics, output=output, resume=True)
    assert [metric.asked for metric in metrics] == [["r3", "r7"], ["r7"]]
    assert second.summary["one"].scored == len(ROWS) - 1
    third = evaluate(ROWS, both((), ()), output=output, resume=True)

    assert (third.summary["one"].scored, third.has_passing) == (len(ROWS), False)
    assert output.read_bytes() == whole.read_bytes()
    assert not partial_of(output).exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["evaluate", "-o", "r.jsonl"], "the judge scored nothing: "),
        (["agree", "--label-column", "label"], "has a score: "),
    ],
)
def test_where_nothing_is_scored_the_command_fails_and_says_why_once(
    command, fake_openai, monkeypatch, tmp_path, words, told
):
    fake_openai.answer = lambda _: fake_openai.fails(401, "Incorrect API key provided")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RAGSPAN_JUDGE", "openai:m")
    monkeypatch.setenv("RAGSPAN_JUDGE_BASE_URL", fake_openai.base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    with (tmp_path / "t.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["id", "question", "contexts", "answer", "label"])
        writer.writeheader()
        writer.writerows({**row, "contexts": json.dumps(row["contexts"]), "label": "yes"} for row in ROWS[:6])
    done = command(words[0], tmp_path / "t.csv", *words[1:])

    assert done.exit_code == 1
    assert (done.stderr.count("Incorrect API key"), told in done.stderr) == (1, True)
    assert "Incorrect API key" not in done.stdout


def test_a_resumed_run_counts_what_the_earlier_one_spent_on_what_failed(tmp_path):
    def paying(*failing):
        def ask(_, row):
            report_usage(Usage(requests=1))
            return JudgeError("InvalidVerdict", "no verdict") if row in failing else None

        return Flaky(ask)

    evaluate(ROWS, [paying("r3", "r7")], output=tmp_path / "r.jsonl")
    resumed = evaluate(ROWS, [paying()], output=tmp_path / "r.jsonl", resume=True)

    assert resumed.usage.requests == len(ROWS) + 2
