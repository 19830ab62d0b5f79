"""Tables have time: an outage is waited out, a budget paces, and what failed is judged again."""

from __future__ import annotations

import csv
import json

import pytest

from ragspan import Budget
from ragspan.evaluate import evaluate, outages
from ragspan.evaluate.rows import partial_of
from ragspan.exceptions import ConfigurationError, JudgeError
from ragspan.judges.llm import requests
from ragspan.judges.session import report_usage, reserve
from ragspan.outcomes import MetricFailure, Score
from ragspan.testing import FakeJudge
from ragspan.usage import Usage

ROWS = [{"id": f"r{number}", "question": "q", "contexts": ["It rains."], "answer": "It rains."} for number in range(30)]


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Pauses of hundredths of a second."""
    monkeypatch.setattr(outages, "_LONGEST_PAUSE", 0.05)
    monkeypatch.setattr(outages, "_SUSPECT", 0.5)
    monkeypatch.setattr(requests, "_PAUSE", 0.2)


class Flaky:
    """A judge's metric that fails as it is told; `fails` is called with the number of the question, from 1."""

    name = "flaky"

    def __init__(self, fails):
        self._fails, self.asked = fails, []

    async def score(self, record):
        self.asked.append(record.record_id)
        if error := self._fails(len(self.asked), record.record_id):
            raise error
        return Score(value=1.0, threshold=0.5)


def outage(_=None):
    return JudgeError("InternalServerError", "HTTP 503: overloaded", outage=True, status=503)


@pytest.mark.parametrize("error", [outage(), ConnectionRefusedError(), TimeoutError()])
def test_an_outage_costs_no_row(error):
    metric = Flaky(lambda number, _: error if number in range(5, 60) else None)
    evaluation = evaluate(ROWS, [metric])

    assert evaluation.summary["flaky"].scored == len(ROWS)


def test_a_row_that_the_judge_cannot_take_holds_up_no_other():
    metric = Flaky(lambda _, record_id: outage() if record_id == "r3" else None)
    evaluation = evaluate(ROWS, [metric], concurrency=2)

    assert evaluation.summary["flaky"].scored == len(ROWS) - 1


def test_without_patience_an_outage_fails_the_rows_at_once():
    metric = Flaky(lambda number, _: outage() if number > 5 else None)
    evaluation = evaluate(ROWS, [metric], patience=0)

    assert evaluation.summary["flaky"].scored == 5
    assert len(metric.asked) == len(ROWS)
    with pytest.raises(ConfigurationError, match="patience"):
        evaluate(ROWS, [metric], patience=-1)


def test_a_wrong_key_is_waited_for_by_nobody():
    metric = Flaky(lambda *_: JudgeError("AuthenticationError", "HTTP 401: no such key", outage=True, status=401))
    evaluation = evaluate(ROWS, [metric])

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


# Judged again ---------------------------------------------------------------------------------------------------------


class Broken:
    """Fails on some rows, in a way that time does not change."""

    name = "broken"

    def __init__(self, *broken):
        self.broken, self.asked = set(broken), []

    async def score(self, record):
        self.asked.append(record.record_id)
        if record.record_id in self.broken:
            return MetricFailure(error_type="InvalidVerdict", message="no verdict")
        return Score(value=1.0, explanation=record.record_id)


class Other(Broken):
    name = "other"


def test_what_failed_is_judged_again_and_nothing_else(tmp_path):
    output, whole = tmp_path / "r.jsonl", tmp_path / "whole.jsonl"
    evaluate(ROWS, [Broken(), Other()], output=whole)
    first = evaluate(ROWS, [Broken("r3", "r7"), Other("r7")], output=output)
    assert (first.summary["broken"].scored, first.has_passing) == (len(ROWS) - 2, True)

    broken, other = Broken("r7"), Other()
    second = evaluate(ROWS, [broken, other], output=output, resume=True)
    assert (broken.asked, other.asked) == (["r3", "r7"], ["r7"])
    assert (second.resumed, second.summary["broken"].scored) == (len(ROWS) - 2, len(ROWS) - 1)
    third = evaluate(ROWS, [Broken(), Other()], output=output, resume=True)

    assert third.summary["broken"].scored == len(ROWS)
    assert output.read_bytes() == whole.read_bytes()
    assert not partial_of(output).exists()
    assert not third.has_passing


# The command ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "t.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, ["id", "question", "contexts", "answer", "label"])
        writer.writeheader()
        writer.writerows({**row, "contexts": json.dumps(row["contexts"]), "label": "yes"} for row in ROWS[:6])
    return path


@pytest.fixture
def wrong_key(fake_openai, monkeypatch):
    fake_openai.answer = lambda _: fake_openai.fails(401, "Incorrect API key provided")
    monkeypatch.setenv("RAGSPAN_JUDGE", "openai:m")
    monkeypatch.setenv("RAGSPAN_JUDGE_BASE_URL", fake_openai.base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "k")


@pytest.mark.usefixtures("wrong_key")
@pytest.mark.parametrize(
    ("words", "told"), [(["evaluate"], "nothing was scored: "), (["agree", "--label-column", "label"], "has a score: ")]
)
def test_where_nothing_is_scored_the_command_fails_and_says_why_once(command, table, words, told):
    done = command(words[0], table, *words[1:])

    assert done.exit_code == 1
    assert done.stderr.count("Incorrect API key") == 1
    assert told in done.stderr
    assert "Incorrect API key" not in done.stdout


def test_a_table_without_rows_is_a_failure_with_a_reason(command, write_bytes):
    done = command("evaluate", write_bytes(b"question,contexts,answer\n"))

    assert (done.exit_code, "nothing was scored: the table has no rows" in done.stderr) == (1, True)
