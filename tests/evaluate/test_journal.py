"""What is done is kept, whatever comes."""

from __future__ import annotations

import gc
import math
import os
from dataclasses import dataclass

import numpy as np
import pytest

from ragspan.evaluate.journal import Journal
from ragspan.evaluate.results import EvaluatedRow
from ragspan.exceptions import TableError
from ragspan.judges.judge_protocols import ClaimVerdict, ContextRating, ContextVerdict, Rating, Vote
from ragspan.metrics import JudgedContext
from ragspan.outcomes import Cause, MetricFailure, NotApplicable, Score
from ragspan.records import RagRecord
from ragspan.usage import Usage

ABOUT = {"metrics": [{"name": "m"}], "limit": None}


def evaluated(row=1, outcome=None):
    record = RagRecord(question="q", contexts=["c"], response="r", record_id="a", started_ns=1)
    outcomes = {"m": outcome or Score(value=0.5), "n": NotApplicable(reason="no_claims")}
    return EvaluatedRow(row=row, record=record, outcomes=outcomes)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "results.csv.partial"


@pytest.fixture
def written(path):
    journal = Journal(path, ABOUT)
    journal.add(evaluated())
    journal.add(evaluated(3))
    assert path.read_bytes().count(b"\n") == 3  # before it is closed
    journal.close()
    return path


@pytest.mark.parametrize(
    ("text", "changes", "resume", "message"),
    [
        (None, {}, False, r"holds rows of an earlier run .* --resume"),
        (None, {"limit": 5}, True, "cannot be continued: limit was null and is 5$"),
        *[(text, {}, True, "delete it to begin anew") for text in ("question,answer\n", '{"journal": 99}\n', "[]\n")],
    ],
)
def test_a_journal_that_cannot_be_continued_is_an_error_and_stays_as_it_is(written, text, changes, resume, message):
    if text is not None:
        written.write_text(text, encoding="utf-8")
    before = written.read_bytes()

    with pytest.raises(TableError, match=message):
        Journal(written, {**ABOUT, **changes}, resume=resume)
    assert written.read_bytes() == before


@pytest.mark.parametrize("line", [b"{}", b'{"row":1,"id":"a","digest":"","outcomes":{"m":["Score",{},[]]}}', b"text"])
def test_damaged_lines_are_an_error(written, line):
    written.write_bytes(written.read_bytes() + line + b"\n")

    with pytest.raises(TableError, match="damaged"):
        list(Journal(written, ABOUT, resume=True).results())


def test_a_row_that_was_judged_again_counts_once_and_in_its_place(written):
    journal = Journal(written, ABOUT, resume=True)
    assert journal.last_row == 3
    for again in (evaluated(outcome=Score(value=0.1)), evaluated(outcome=Score(value=0.2)), evaluated(4)):
        journal.add(again)

    assert [(one.row, one.score) for one in journal.results() if one.metric == "m"] == [(1, 0.2), (3, 0.5), (4, 0.5)]
    journal.close()


def test_the_journal_of_a_run_that_ended_is_continued_or_replaced(written):
    journal = Journal(written, ABOUT, resume=True)
    journal.end()
    whole = written.read_bytes()
    Journal(written, ABOUT, resume=True).close()
    assert whole.startswith(written.read_bytes())
    assert written.read_bytes().count(b"\n") == 3

    written.write_bytes(whole)
    Journal(written, {**ABOUT, "limit": 5}).close()
    assert not written.exists()


def test_a_folder_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(TableError, match="cannot be written: No such file"):
        Journal(tmp_path / "absent" / "j", ABOUT).add(evaluated())


@pytest.mark.skipif(not hasattr(os, "O_NOFOLLOW"), reason="this system cannot refuse links")
@pytest.mark.parametrize("made", ["before", "after the run began"])
def test_no_answer_is_written_where_a_link_leads(path, tmp_path, made):
    elsewhere = tmp_path / "elsewhere"
    journal = None if made == "before" else Journal(path, ABOUT)
    path.symlink_to(elsewhere)

    with pytest.raises(TableError):
        (journal or Journal(path, ABOUT)).add(evaluated())

    assert not elsewhere.exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with names")
@pytest.mark.parametrize("resume", [False, True])
@pytest.mark.parametrize("make", [lambda path: os.mkfifo(path), lambda path: path.mkdir()], ids=["pipe", "folder"])
def test_what_is_no_file_is_neither_waited_for_nor_written_to(path, make, resume):
    make(path)

    with pytest.raises(TableError, match="is not a file"):
        Journal(path, ABOUT, resume=resume)


def test_a_temporary_journal_is_gone_with_its_last_user():
    journal = Journal(None, ABOUT)
    path = journal.path
    assert path.exists()

    del journal
    gc.collect()
    assert not path.exists()


# Outcomes -------------------------------------------------------------------------------------------------------------


@dataclass
class OwnEvidence:
    """Of a metric that is none of ours."""

    weight: float = math.nan


EVIDENCE = (
    Vote(grounded=True, probability=0.5),
    Rating(value=0.25, explanation="e"),
    ClaimVerdict(index=0, verdict="unsupported", claim="c"),
    ContextVerdict(index=1, useful=True),
    ContextRating(index=2, value=0.0),
    JudgedContext(index=0, id=None, rank=None, value=1.0),
)


@pytest.mark.parametrize(
    ("outcome", "read"),
    [
        *(
            (outcome, outcome)
            for outcome in (
                Score(value=1 / 3),
                Score(
                    value=1, threshold=0.8, label="fail", explanation="e", judge="j", prompt_version="1", fallback="f"
                ),
                Score(value=0.5, evidence=EVIDENCE, details={"claims": 3, "spread": 0.1}),
                Score(value=0.5, causes=(Cause(kind="cut", claim="c", document=3, search="s", step="r"),)),
                Score(value=0.5, usage=Usage(requests=2, input_tokens=3, cached_tokens=1, output_tokens=4, usd=0.25)),
                Score(value=0.5, explanation="half of a surrogate pair: \ud800"),
                NotApplicable(reason="no_contexts", detail="d"),
                MetricFailure(error_type="timeout", message="m"),
                NotApplicable(reason="no_claims", usage=Usage(requests=1, input_tokens=3)),
                MetricFailure(error_type="InvalidVerdict", message="m", usage=Usage(requests=2, usd=0.1)),
            )
        ),
        (Score(value=0.5, evidence=(OwnEvidence(), object(), EVIDENCE[0])), Score(value=0.5, evidence=EVIDENCE[:1])),
        (
            Score(value=np.float32(0.5), details={"spread": math.inf, "votes": np.int64(3)}),
            Score(value=0.5, details={"spread": math.inf, "votes": 3}),
        ),
    ],
)
def test_an_outcome_comes_back_as_it_was_but_for_evidence_that_only_another_metric_knows(outcome, read):
    journal = Journal(None, ABOUT)
    journal.add(evaluated(outcome=outcome))
    (row,) = journal.resume(iter([evaluated()]))

    assert row.outcomes["m"] == read
    journal.close()
