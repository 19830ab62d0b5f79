"""What is done is kept, whatever comes."""

from __future__ import annotations

import gc
import json
import math
import os
import stat
from dataclasses import dataclass

import pytest

from ragspan.datasets.journal import Journal, JournalRow, outcome_from, plain_outcome
from ragspan.datasets.results import BadRow, EvaluatedRow
from ragspan.exceptions import TableError
from ragspan.judges.base import ClaimVerdict, ContextRating, ContextVerdict, Rating, Vote
from ragspan.metrics import JudgedContext
from ragspan.outcomes import MetricFailure, NotApplicable, Score, Usage
from ragspan.records import RagRecord

ABOUT = {"metrics": [{"name": "m"}], "limit": None}
BAD = BadRow(row=2, reason="bad", line=3)


def evaluated(row=1, text="r"):
    record = RagRecord(question="q", contexts=["c"], response=text, record_id="a")
    return EvaluatedRow(
        row=row, record=record, outcomes={"m": Score(value=0.5), "n": NotApplicable(reason="no_claims")}
    )


@pytest.fixture
def path(tmp_path):
    return tmp_path / "results.csv.partial"


@pytest.fixture
def written(path):
    journal = Journal.begin(path, ABOUT)
    journal.add(evaluated())
    journal.add(BAD)
    journal.close()
    return path


def test_rows_are_read_as_they_were_added(written):
    journal = Journal.resume(written, ABOUT)
    first, second = journal.done()
    journal.close()

    assert isinstance(first, JournalRow)
    assert (first.row, first.record_id, first.outcomes) == (1, "a", evaluated().outcomes)
    assert (second, journal.rows) == (BAD, 2)


def test_each_row_is_in_the_file_at_once(path):
    journal = Journal.begin(path, ABOUT)
    journal.add(BAD)

    assert path.read_bytes().count(b"\n") == 2
    journal.close()


def test_a_line_that_was_not_finished_is_cut_off(written):
    whole = written.read_bytes()
    written.write_bytes(whole + b'{"row":3,"id":"b","outc')
    journal = Journal.resume(written, ABOUT)
    journal.add(evaluated(3))
    journal.close()

    assert [noted.row for noted in journal.done()] == [1, 2, 3]


def test_a_first_line_that_was_not_finished_is_begun_again(path):
    path.write_bytes(b'{"jour')
    journal = Journal.resume(path, ABOUT)
    journal.add(BAD)
    journal.close()

    assert list(journal.done()) == [BAD]


def test_a_journal_that_is_there_is_not_written_over(written):
    before = written.read_bytes()

    with pytest.raises(TableError, match=r"holds 2 rows of an earlier run .* --resume"):
        Journal.begin(written, ABOUT)
    assert written.read_bytes() == before


def test_other_settings_are_an_error_that_names_them(written):
    with pytest.raises(TableError, match="limit was not set and is 5") as error:
        Journal.resume(written, {**ABOUT, "limit": 5})
    assert "metrics" not in str(error.value)


@pytest.mark.parametrize("text", ["question,answer\n", '{"journal": 99}\n', "[]\n"])
def test_what_is_no_journal_is_not_continued(path, text):
    path.write_text(text, encoding="utf-8")

    with pytest.raises(TableError, match="delete it to begin anew"):
        Journal.resume(path, ABOUT)
    assert path.read_text(encoding="utf-8") == text


@pytest.mark.parametrize(
    "line", [b"{}\n", b'{"row":1,"id":"a","digest":"","outcomes":{"m":{"is":"Score"}}}\n', b"text\n"]
)
def test_damaged_lines_are_an_error(written, line):
    written.write_bytes(written.read_bytes() + line)
    journal = Journal.resume(written, ABOUT)

    with pytest.raises(TableError, match="damaged"):
        list(journal.done())
    journal.close()


def test_half_of_a_surrogate_pair_can_be_noted(path):
    journal = Journal.begin(path, ABOUT)
    journal.add(evaluated(text="\ud800"))
    journal.close()

    assert len(list(journal.done())) == 1


def test_a_folder_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(TableError, match="cannot be written: No such file"):
        Journal.begin(tmp_path / "absent" / "j", ABOUT)


def test_a_temporary_journal_is_gone_with_its_last_user():
    journal = Journal.temporary(ABOUT)
    path = journal.path
    rows = journal.done()
    assert path.exists()

    del journal, rows
    gc.collect()
    assert not path.exists()


def test_a_journal_without_rows_leaves_nothing_behind(path, written):
    Journal(written).remove_if_empty()
    assert written.exists()

    written.unlink()
    journal = Journal.begin(path, ABOUT)
    journal.close()
    journal.remove_if_empty()
    assert not path.exists()


def test_only_the_owner_may_read_a_journal(path):
    before = os.umask(0)
    try:
        Journal.begin(path, ABOUT).close()
    finally:
        os.umask(before)

    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_journal_that_is_nested_without_end_is_an_error(written):
    written.write_bytes(written.read_bytes() + b"[" * 200_000 + b"\n")
    journal = Journal.resume(written, ABOUT)

    with pytest.raises(TableError, match="damaged"):
        list(journal.done())
    journal.close()


EVIDENCE = (
    Vote(grounded=True, probability=0.5),
    Rating(value=0.25, explanation="e"),
    ClaimVerdict(index=0, supported=False, claim="c"),
    ContextVerdict(index=1, useful=True),
    ContextRating(index=2, value=0.0),
    JudgedContext(index=0, id=None, rank=None, value=1.0),
    "text",
)


def through_json(outcome):
    return outcome_from(json.loads(json.dumps(plain_outcome(outcome), allow_nan=False)))


@pytest.mark.parametrize(
    "outcome",
    [
        Score(value=1 / 3),
        Score(value=1, threshold=0.8, label="fail", explanation="e", judge="j", prompt_version="1", fallback="f"),
        Score(value=0.5, evidence=EVIDENCE, details={"claims": 3, "spread": 0.1}),
        Score(value=0.5, usage=Usage(requests=2, input_tokens=3, cached_tokens=1, output_tokens=4, usd=0.25)),
        Score(value=0.5, usage=Usage()),
        NotApplicable(reason="no_contexts", detail="d"),
        NotApplicable(reason="no_contexts"),
        MetricFailure(error_type="timeout", message="m"),
    ],
)
def test_an_outcome_comes_back_as_it_was(outcome):
    back = through_json(outcome)

    assert back == outcome
    assert type(getattr(back, "evidence", ())) is tuple


@dataclass
class OwnEvidence:
    name: str
    weight: float = math.nan
    source: object = None


def test_evidence_of_a_metric_of_ones_own_becomes_plain():
    score = Score(value=0.5, evidence=(OwnEvidence("a"), {"b": 1, "c": []}, object()))

    assert through_json(score).evidence == ({"is": "OwnEvidence", "name": "a"}, {"b": 1}, "object")


def test_no_nan_gets_through():
    score = Score(value=0.5, details={"spread": math.nan, "votes": 3}, evidence=(math.inf,))

    assert through_json(score) == Score(value=0.5, details={"votes": 3}, evidence=("float",))
