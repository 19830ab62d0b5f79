"""What comes out of an evaluated table: a summary, the worst answers and all results; and how it is shown.

No figure here is NaN: where nothing was scored there is None.
"""

from __future__ import annotations

import importlib
import io
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import msgspec
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ragspan.counted import counted
from ragspan.evaluate.columns import LABEL
from ragspan.evaluate.estimates import LEAST_LABELS
from ragspan.evaluate.rows import BadRow, EvaluatedRow
from ragspan.evaluate.summaries import SUMMARY_HEADER, AskedFigures, MetricSummary, named_counts
from ragspan.judge_share import JudgeShare
from ragspan.outcomes import NotApplicable, Outcome, Score
from ragspan.usage import Usage

WORST_KEPT = 20
"""Rows of a metric that are kept with their texts."""
_WORST_SHOWN = 3
_ROWS_FOR_ESTIMATE = 500


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class Evaluation:
    """The outcome of evaluating a table. It holds eight bytes a score in memory; `all_rows()` streams the rest."""

    metrics: tuple[str, ...]
    rows: int
    """Records that were evaluated: the table's rows but for the bad ones, and for those that are not done."""
    summary: Mapping[str, MetricSummary]
    worst: Sequence[EvaluatedRow] = field(default=(), repr=False)
    """The rows with the lowest scores of any of the metrics, in the order of the table, with texts and evidence: at most
    `WORST_KEPT` a metric. See `worst_by`."""
    bad_rows: Sequence[BadRow] = ()
    """The first ten thousand of them, in the order of the table."""
    bad_row_count: int = 0
    resumed: int = 0
    """Rows that an earlier run did, of these and the bad ones."""
    skipped: Mapping[str, int] = field(default_factory=dict)
    """Rows without a score that they should have, by the first reason: one of `SKIPPED_REASONS`, the type of a failure,
    or `unreadable` for bad rows."""
    failures: Mapping[str, str] = field(default_factory=dict)
    """What failures said, by their type: the first of each."""
    failing: int = 0
    """Rows that fail at least one metric."""
    judged: Mapping[str, int] = field(default_factory=dict)
    """Rows that have a score of each judge, by its name with the version of its prompts."""
    by_dimension: Mapping[str, Mapping[str, Mapping[str, MetricSummary]]] = field(default_factory=dict)
    """By column (`by`, `RAGSPAN_DIMENSIONS`), value and metric; at most 50 values of a column, then `_OTHER`."""
    source: str | None = None
    """The file's name; None for data in memory."""
    labels: Mapping[int, bool] = field(default_factory=dict)
    """Whether people say that a response is good, by its row; of the rows that have a label."""
    label_name: str = LABEL
    """The name of their column."""
    columns: str = ""
    """What was read as what, in a line."""
    judge_share: JudgeShare | None = None
    """The share of the rows that the judge was asked about; None if it was asked about all."""
    usage: Usage = field(default_factory=Usage)
    """Of all judging, also that of an earlier run that this one resumed."""
    seconds: float = 0.0
    """The duration of this run."""
    is_complete: bool = True
    """False if it was interrupted: what is here is what was done by then."""
    has_passing: bool = False
    """Whether metrics failed on rows, or the budget was spent: `resume` judges these again."""
    stream: Callable[[], Iterator[EvaluatedRow]] = lambda: iter(())

    def __str__(self) -> str:
        """The figures of each metric as a table, and what was done."""
        written = io.StringIO()
        console = Console(file=written, highlight=False, width=120)
        for part in parts(self):
            console.print(part, soft_wrap=isinstance(part, str), markup=False)
        return "\n".join(line.rstrip() for line in written.getvalue().strip("\n").splitlines())

    __repr__ = __str__

    @property
    def is_scored(self) -> bool:
        """Whether any metric has a score of the judge that was to give it, or finds a refusal right: then the judge works."""
        return any(summary.settled and not summary.silence for summary in self.summary.values())

    @property
    def why_not_scored(self) -> str:
        """Why rows have no score, in words: what failures said, and the reasons that are none."""
        silent = [summary.silence for summary in self.summary.values() if summary.silence]
        if silent:
            return silent[0]
        reasons: Counter[str] = Counter()
        for summary in self.summary.values():
            reasons |= Counter(summary.not_scored)
        if self.bad_row_count:
            reasons["unreadable"] = self.bad_row_count
        said = {reason: f" ({self.failures[reason]})" for reason in reasons if self.failures.get(reason)}
        parts = [f"{reason} {count:,}{said.get(reason, '')}" for reason, count in reasons.most_common()]
        return ", ".join(parts) or "the table has no rows"

    @property
    def worst_responses(self) -> list[EvaluatedRow]:
        """Of `worst`, the rows that fail a metric, those that fail most first, and each response once."""
        first: dict[str | None, EvaluatedRow] = {}
        for row in sorted((row for row in self.worst if row.failing), key=lambda row: row.badness):
            first.setdefault(row.record.response, row)
        return list(first.values())

    def worst_by(self, metric: str) -> list[EvaluatedRow]:
        """Of `worst`, the rows that have a score of this metric, the lowest first, and of equals the earlier row."""
        rated = [(evaluated.outcomes.get(metric), evaluated) for evaluated in self.worst]
        values = [(score.value, row.row, row) for score, row in rated if isinstance(score, Score)]
        return [row for _, _, row in sorted(values, key=lambda rated: rated[:2])[:WORST_KEPT]]

    def all_rows(self) -> Iterator[EvaluatedRow]:
        """Each row in the order of the table, with its texts and outcomes, read from the file of rows."""
        return self.stream()

    def figures(self) -> dict[str, Any]:
        """All that is counted, in plain data: what `--json` writes and a report shows."""
        left_out = {"worst", "labels", "stream"}
        found = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in left_out}
        plain: dict[str, Any] = msgspec.to_builtins(found)
        return plain

    def to_pandas(self) -> Any:
        """A line for each row: its number, id, texts and metadata, and three columns a metric.

        These are `faithfulness`, `faithfulness_label` and `faithfulness_reason` (the judge's words, or why there is no score), and
        `faithfulness_judge` where a judge was asked about a share of the rows. The index counts the rows of the table from 0, so
        that the frame can be joined with the table's own. What is missing is `NA`.

        Raises:
            ImportError: pandas is not installed.
        """
        pandas = importlib.import_module("pandas")
        lines = []
        for row in self.all_rows():
            record = row.record
            texts = None if record.contexts is None else [one.text for one in record.contexts]
            line: dict[str, Any] = {
                "row": row.row,
                "record_id": record.record_id,
                "question": record.question,
                "contexts": texts,
            }
            line |= {"response": record.response, **record.metadata}
            for metric, outcome in row.outcomes.items():
                score = outcome if isinstance(outcome, Score) else None
                line[metric] = score and float(score.value)
                line[f"{metric}_label"] = score and score.label
                line[f"{metric}_reason"] = _reason(outcome)
                line |= {} if self.judge_share is None else {f"{metric}_judge": score and score.judge}
            lines.append(line)
        frame = pandas.DataFrame(lines, index=[line["row"] - 1 for line in lines], dtype="object")
        kinds = {
            name: "Float64" if name in self.metrics else "string" for name in frame if name.startswith(self.metrics)
        }
        return frame.astype(kinds)


def _reason(outcome: Outcome) -> str | None:
    if isinstance(outcome, Score):
        return outcome.explanation
    if isinstance(outcome, NotApplicable):
        return ": ".join(filter(None, [outcome.reason, outcome.detail]))
    return f"{outcome.error_type}: {outcome.message}"


# In words -------------------------------------------------------------------------------------------------------------


def parts(evaluation: Evaluation, *, with_worst: bool = False) -> Iterator[Table | Text | str]:
    """The table of figures, the worst responses, and what was done."""
    figures = text_table(*SUMMARY_HEADER)
    for summary in evaluation.summary.values():
        figures.add_row(*summary.cells())
    yield figures
    yield from share_lines(evaluation)
    failing = evaluation.worst_responses if with_worst else []
    if failing:
        yield Text("The worst responses" if len(failing) > 1 else "The failing response", style="bold")
        for row in failing[:_WORST_SHOWN]:
            yield from row.described(*row.failing)
        yield ""
    for summary in evaluation.summary.values():
        if summary.unlabelled:
            yield f"{summary.metric}: {summary.unlabelled}: the judge cannot tell"
    ranks = [one.metric for one in evaluation.summary.values() if one.scored and not one.labelled]
    if ranks:
        yield f"{', '.join(ranks)}: no label, so no answer passes or fails by it"
    yield from _not_scored(evaluation)
    yield _headline(evaluation)


def text_table(*headings: str) -> Table:
    """An empty table of Rich's."""
    found = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in headings:
        found.add_column(heading, justify="left" if heading == "metric" else "right", overflow="fold")
    return found


def share_lines(evaluation: Evaluation) -> list[str]:
    """Whose the figures of the table are, and what the judge says that was asked about a share of the rows; else nothing."""
    shared = [(one.metric, one.asked) for one in evaluation.summary.values() if one.asked is not None]
    if not shared:
        return []
    names = dict.fromkeys(asked.judge for _, asked in shared if asked.judge)
    who = ", ".join(filter(None, names)) or "the judge"
    lines = [
        f"Above: the embedded judge's figures, over all rows. {who} was asked about a share of them ({evaluation.judge_share}):"
    ]
    return [*lines, *(f"{metric}: {_asked_in_words(asked)}" for metric, asked in shared), ""]


def _asked_in_words(asked: AskedFigures) -> str:
    if asked.silence:
        return asked.silence
    rate = asked.failures
    if rate is not None:
        words = f"{rate.value:.1%} of all rows fail by {asked.judge}, estimated ({rate.lower:.1%} to {rate.upper:.1%})"
        words += "" if asked.mean is None else f", mean {asked.mean:.3f}"
    else:
        words = (
            f"no estimate for all rows: {asked.judge} scored {asked.random:,} at random, and {LEAST_LABELS} are needed"
            f" (about {_ROWS_FOR_ESTIMATE} rows at a share of 0.2)"
        )
    words += f"; it scored {asked.doubtful:,} doubtful rows, and {asked.random:,} at random"
    return words + (f"; not scored by it: {named_counts(asked.fallbacks)}" if asked.fallbacks else "")


def _not_scored(evaluation: Evaluation) -> Iterator[str]:
    """Why rows have no score, once for all metrics with the same reasons."""
    by_reasons: dict[str, list[str]] = {}
    for summary in evaluation.summary.values():
        by_reasons.setdefault(summary.reasons, []).append(summary.metric)
    for reasons, metrics in by_reasons.items():
        if reasons:
            yield f"not scored by {', '.join(metrics)}: {reasons}"


def _headline(evaluation: Evaluation) -> str:
    """How much was done, what was skipped and why, in how long, for how much."""
    done, skipped = evaluation.rows + evaluation.bad_row_count, sum(evaluation.skipped.values())
    text = f"{counted(done - skipped, 'row', grouped=True)} evaluated"
    if len(evaluation.judged) == 1:
        text += f" by {next(iter(evaluation.judged))}"
    elif evaluation.judged:
        text += f" ({', '.join(f'{count:,} by {judge}' for judge, count in evaluation.judged.items())})"
    if skipped:
        text += f", {skipped:,} skipped ({named_counts(evaluation.skipped)})"
    new_rows = done - evaluation.resumed
    if evaluation.resumed:
        text += f", {new_rows:,} of the table's rows in this run"
    text += f", {duration(evaluation.seconds)}"
    if new_rows >= evaluation.seconds > 0:
        text += f" ({new_rows / evaluation.seconds:,.0f} rows/s)"
    usage = evaluation.usage
    if usage.requests:
        text += f"; {usage.requests:,} requests, {usage.input_tokens + usage.output_tokens:,} tokens"
    return text + (f", ${usage.usd:.4f}" if usage.usd is not None else "")


def duration(seconds: float) -> str:
    """Seconds as people say them."""
    minutes, rest = divmod(round(seconds), 60)
    if minutes >= 60:  # noqa: PLR2004
        return f"{minutes // 60} h {minutes % 60:02} min"
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
