"""What comes out of an evaluated table: figures, and all rows from their file; and how it is shown.

No figure here is NaN: where nothing was scored there is None.
"""

from __future__ import annotations

import heapq
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
from ragspan.evaluate.estimates import LEAST_LABELS
from ragspan.evaluate.rows import LABEL, BadRow, EvaluatedRow
from ragspan.evaluate.summaries import SUMMARY_HEADER, MetricSummary, named_counts
from ragspan.judge_share import JudgeShare
from ragspan.usage import Usage

_WORST_KEPT, _WORST_SHOWN = 20, 3


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class Evaluation:
    """The outcome of evaluating a table. It holds eight bytes a score in memory; `all_rows()` streams the rest."""

    metrics: tuple[str, ...]
    rows: int
    """Records that were evaluated: the table's rows but for the bad ones, and for those that are not done."""
    summary: Mapping[str, MetricSummary]
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
    labelled: int = 0
    """Rows that pass or fail at least one metric."""
    failing: int = 0
    """Rows that fail at least one metric."""
    judged: Mapping[str, int] = field(default_factory=dict)
    """Rows that have a score of each judge, by its name with the version of its prompts."""
    by_dimension: Mapping[str, Mapping[str, Mapping[str, MetricSummary]]] = field(default_factory=dict)
    """By column of `by`, value and metric; at most 50 values of a column, then `_OTHER`."""
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
        reasons: Counter[str] = Counter()
        for summary in self.summary.values():
            if summary.silence:
                return summary.silence
            reasons |= Counter(summary.not_scored)
        if self.bad_row_count:
            reasons["unreadable"] = self.bad_row_count
        said = {reason: f" ({self.failures[reason]})" for reason in reasons if self.failures.get(reason)}
        listed = [f"{reason} {count:,}{said.get(reason, '')}" for reason, count in reasons.most_common()]
        return ", ".join(listed) or "the table has no rows"

    def worst_by(self, metric: str) -> list[EvaluatedRow]:
        """The twenty rows with the lowest scores of this metric, the lowest first, and of equals the earlier row."""
        scored = ((score.value, row.row, row) for row in self.all_rows() if (score := row.scores.get(metric)))
        return [row for *_, row in heapq.nsmallest(_WORST_KEPT, scored)]

    def all_rows(self) -> Iterator[EvaluatedRow]:
        """Each row in the order of the table, with its texts and outcomes, read from the file of rows."""
        return self.stream()

    def figures(self) -> dict[str, Any]:
        """All that is counted, in plain data: what `--json` writes and a report shows."""
        found = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in {"labels", "stream"}}
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
        lines: dict[int, dict[str, Any]] = {}
        for row in self.all_rows():
            record = row.record
            texts = None if record.contexts is None else [one.text for one in record.contexts]
            line = {"row": row.row, "record_id": record.record_id, "question": record.question, "contexts": texts}
            lines[row.row - 1] = line = {**line, "response": record.response, **record.metadata}
            for metric, outcome in row.outcomes.items():
                score = row.scores.get(metric)
                said = (
                    getattr(outcome, name, None)
                    for name in ("explanation", "reason", "detail", "error_type", "message")
                )
                reason = ": ".join(filter(None, said)) or None
                line[metric] = score and float(score.value)
                line |= {f"{metric}_label": score and score.label, f"{metric}_reason": reason}
                line |= {} if self.judge_share is None else {f"{metric}_judge": score and score.judge}
        frame = pandas.DataFrame(list(lines.values()), index=list(lines), dtype="object")
        of_metrics = [name for name in frame if name.startswith(self.metrics)]
        return frame.astype({name: "Float64" if name in self.metrics else "string" for name in of_metrics})


# In words -------------------------------------------------------------------------------------------------------------


def parts(evaluation: Evaluation, *, with_worst: bool = False) -> Iterator[Table | Text | str]:
    """The table of figures, the worst responses, and what was done."""
    figures = text_table(*SUMMARY_HEADER)
    for summary in evaluation.summary.values():
        figures.add_row(*summary.cells())
    yield figures
    yield from share_lines(evaluation)
    if with_worst and evaluation.failing:
        failing: dict[str | None, EvaluatedRow] = {}  # each response once
        for row in heapq.nsmallest(
            _WORST_KEPT, (row for row in evaluation.all_rows() if row.failing), key=lambda row: row.badness
        ):
            failing.setdefault(row.record.response, row)
        yield Text("The worst responses" if len(failing) > 1 else "The failing response", style="bold")
        for row in list(failing.values())[:_WORST_SHOWN]:
            yield from row.described(*row.failing)
        yield ""
    by_reasons: dict[str, list[str]] = {}
    for summary in evaluation.summary.values():
        if summary.unlabelled:
            yield f"{summary.metric}: {summary.unlabelled}: the judge cannot tell"
        if summary.not_scored:
            by_reasons.setdefault(summary.reasons, []).append(summary.metric)
    ranks = [one.metric for one in evaluation.summary.values() if one.scored and not one.labelled]
    if ranks:
        yield f"{', '.join(ranks)}: no label, so no answer passes or fails by it"
    yield from (f"not scored by {', '.join(metrics)}: {reasons}" for reasons, metrics in by_reasons.items())
    yield _headline(evaluation)


def text_table(*headings: str) -> Table:
    """An empty table of Rich's."""
    found = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in headings:
        is_name = heading == "metric"
        found.add_column(heading, justify="left" if is_name else "right", no_wrap=is_name, overflow="fold")
    return found


def share_lines(evaluation: Evaluation) -> list[str]:
    """Whose the figures of the table are, and what the judge says that was asked about a share of the rows; else nothing."""
    shared = {one.metric: one.asked for one in evaluation.summary.values() if one.asked is not None}
    who = ", ".join(dict.fromkeys(asked.judge for asked in shared.values() if asked.judge)) or "the judge"
    share = f"{who} was asked about a share of them ({evaluation.judge_share})"
    lines = [f"Above: the embedded judge's figures, over all rows. {share}:"]
    for metric, asked in shared.items():
        words = asked.silence
        if words is None:
            words = (
                f"no estimate for all rows: {asked.judge} scored {asked.random:,} at random, and {LEAST_LABELS} are needed"
                " (about 500 rows at a share of 0.2)"
            )
            if (rate := asked.failures) is not None:
                interval = f"({rate.lower:.1%} to {rate.upper:.1%})"
                words = f"{rate.value:.1%} of all rows fail by {asked.judge}, estimated {interval}"
            words += f"; it scored {asked.doubtful:,} doubtful rows, and {asked.random:,} at random"
            words += f"; not scored by it: {named_counts(asked.fallbacks)}" if asked.fallbacks else ""
        lines.append(f"{metric}: {words}")
    return [*lines, ""] if shared else []


def _headline(evaluation: Evaluation) -> str:
    """How much was done, what was skipped and why, in how long, for how much."""
    done, skipped = evaluation.rows + evaluation.bad_row_count, sum(evaluation.skipped.values())
    text = f"{counted(done - skipped, 'row', grouped=True)} evaluated"
    if len(evaluation.judged) == 1:
        text += f" by {next(iter(evaluation.judged))}"
    elif evaluation.judged:
        text += f": {', '.join(f'{count:,} by {judge}' for judge, count in evaluation.judged.items())}"
        text += " (some by more than one)" if sum(evaluation.judged.values()) > done - skipped else ""
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
        text += f"; {'in all runs ' if evaluation.resumed else ''}{counted(usage.requests, 'request', grouped=True)}"
        text += f", {usage.input_tokens + usage.output_tokens:,} tokens"
    return text + (f", ${usage.usd:.4f}" if usage.usd is not None else "")


def duration(seconds: float) -> str:
    """Seconds as people say them."""
    minutes, rest = divmod(round(seconds), 60)
    if minutes >= 60:  # noqa: PLR2004
        return f"{minutes // 60} h {minutes % 60:02} min"
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
