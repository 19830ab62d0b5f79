"""What comes out of an evaluated table: a summary, the worst answers and all results; and how it is shown.

No figure here is NaN: where nothing was scored there is None.
"""

from __future__ import annotations

import importlib
import io
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ragspan.counted import counted
from ragspan.evaluate.columns import LABEL
from ragspan.evaluate.estimates import LEAST_LABELS
from ragspan.evaluate.rows import WORST_KEPT, BadRow, EvaluatedRow
from ragspan.evaluate.summaries import SUMMARY_HEADER, AskedFigures, MetricSummary
from ragspan.judge_share import JudgeShare
from ragspan.notebook import table
from ragspan.outcomes import NotApplicable, Outcome, Score
from ragspan.usage import Usage

if TYPE_CHECKING:
    from rich.console import Console

_WORST_SHOWN = 3
_WIDTH = 120  # of a text that is not printed to a terminal
_COUNTS = {
    "refusal": ("refusal", "refusals"),
    "cannot_tell": ("unsure", "unsure"),
    "no_contexts": ("without contexts", "without contexts"),
}
_MINUTE, _HOUR = 60, 3600
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
    """The first `BAD_ROWS_KEPT` of them, in the order of the table."""
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
    special: Mapping[str, int] = field(default_factory=dict)
    """Rows by what they are, and no metric's fault: `refusal` (the response declines, rightly), `cannot_tell` (the judge is
    unsure), `no_contexts`."""
    by_dimension: Mapping[str, Mapping[str, Mapping[str, MetricSummary]]] = field(default_factory=dict, repr=False)
    """By dimension (`RAGSPAN_DIMENSIONS`), value and metric; at most 50 values of a dimension, then `_OTHER`. The sources of contexts are
    the dimension `source`; an answer with contexts of several sources counts for each."""
    source: str | None = None
    """The file's name; None for data in memory."""
    labels: Mapping[int, bool] = field(default_factory=dict, repr=False)
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
    scores: Mapping[str, array[float]] = field(default_factory=dict, repr=False)
    """By metric, in the order of the table; rows without a score are left out."""
    has_passing: bool = False
    """Whether metrics failed on rows, or the budget was spent: `resume` judges these again."""
    stream: Callable[[], Iterator[EvaluatedRow]] = field(default=lambda: iter(()), repr=False)

    def __str__(self) -> str:
        """The figures of each metric as a table, and what was done."""
        return as_text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """For notebooks."""
        rows = [(*summary.cells(), summary.reasons) for summary in self.summary.values()]
        title = f"{self.source or 'Evaluation'}: {self.rows:,} rows, {sum(self.skipped.values()):,} skipped"
        title += "" if self.is_complete else " (interrupted)"
        return table(title, rows, header=(*SUMMARY_HEADER, "not scored"))

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
            for reason, count in summary.not_scored.items():
                reasons[reason] = max(reasons[reason], count)
        if self.bad_row_count:
            reasons["unreadable"] = self.bad_row_count
        parts = [
            f"{reason} {count:,}" + (f" ({self.failures[reason]})" if self.failures.get(reason) else "")
            for reason, count in reasons.most_common()
        ]
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

    def to_pandas(self) -> Any:
        """A line for each row: its number, id, texts and metadata, and three columns a metric.

        These are `faithfulness`, `faithfulness_label` and `faithfulness_reason` (the judge's words, or why there is no score), and
        `faithfulness_judge` where a judge was asked about a share of the rows. The index counts the rows of the table from 0, so
        that the frame can be joined with the table's own. What is missing is `NA`.

        Raises:
            ImportError: pandas is not installed.
        """
        pandas = importlib.import_module("pandas")
        columns = self._columns()
        frame = pandas.DataFrame({name: pandas.Series(cells, dtype="object") for name, cells in columns.items()})
        frame = frame.astype({name: "Float64" if name in self.metrics else "string" for name in self._named(columns)})
        return frame.set_index(pandas.Index([row - 1 for row in columns["row"]]))

    def to_polars(self) -> Any:
        """As `to_pandas`, in polars, without an index; what is missing is `null`.

        Raises:
            ImportError: polars is not installed.
        """
        polars = importlib.import_module("polars")
        columns = self._columns()
        kinds = {name: polars.Float64 if name in self.metrics else polars.String for name in self._named(columns)}
        return polars.DataFrame(
            [polars.Series(name, cells, dtype=kinds.get(name), strict=False) for name, cells in columns.items()]
        )

    def _named(self, columns: Mapping[str, list[Any]]) -> list[str]:
        return [name for name in columns if name.startswith(self.metrics)]

    def _columns(self) -> dict[str, list[Any]]:
        rows = list(self.all_rows())
        metadata = dict.fromkeys(name for row in rows for name in row.record.metadata)
        columns: dict[str, list[Any]] = {
            "row": [row.row for row in rows],
            "record_id": [row.record.record_id for row in rows],
            "question": [row.record.question for row in rows],
            "contexts": [
                None if row.record.contexts is None else [one.text for one in row.record.contexts] for row in rows
            ],
            "response": [row.record.response for row in rows],
            **{name: [row.record.metadata.get(name) for row in rows] for name in metadata},
        }
        for metric in self.metrics:
            outcomes = [row.outcomes[metric] for row in rows]
            scores = [outcome if isinstance(outcome, Score) else None for outcome in outcomes]
            columns[metric] = [score and float(score.value) for score in scores]
            columns[f"{metric}_label"] = [score and score.label for score in scores]
            columns[f"{metric}_reason"] = [_reason(outcome) for outcome in outcomes]
            if self.judge_share is not None:
                columns[f"{metric}_judge"] = [score and score.judge for score in scores]
        return columns


def _reason(outcome: Outcome) -> str | None:
    if isinstance(outcome, Score):
        return outcome.explanation
    if isinstance(outcome, NotApplicable):
        return ": ".join(filter(None, [outcome.reason, outcome.detail]))
    return f"{outcome.error_type}: {outcome.message}"


def print_evaluation(evaluation: Evaluation, console: Console) -> None:
    """Print the figures of each metric, the worst responses, and what was done."""
    console.print(summary_table(evaluation))
    for line in share_lines(evaluation):
        console.print(line, markup=False, soft_wrap=True)
    for text in _worst_answers(evaluation):
        console.print(text, soft_wrap=True)
    for line in [*unlabelled_lines(evaluation), *_not_scored(evaluation), headline(evaluation)]:
        console.print(line, markup=False)


def as_text(evaluation: Evaluation) -> str:
    """The table of figures with what was done, without colours."""
    from rich.console import Console

    written = io.StringIO()
    console = Console(file=written, highlight=False, width=_WIDTH)
    console.print(summary_table(evaluation))
    for line in [
        *share_lines(evaluation),
        *unlabelled_lines(evaluation),
        *_not_scored(evaluation),
        headline(evaluation),
    ]:
        console.print(line, markup=False, soft_wrap=True)
    return "\n".join(line.rstrip() for line in written.getvalue().strip("\n").splitlines())


def summary_table(evaluation: Evaluation) -> Any:
    """A line for each metric."""
    table = text_table("", *SUMMARY_HEADER)
    for summary in evaluation.summary.values():
        table.add_row(*summary.cells())
    return table


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
    return [*lines, *(f"{metric}: {asked_in_words(asked)}" for metric, asked in shared), ""]


def asked_in_words(asked: AskedFigures) -> str:
    """What the judge says of the rows that it was asked about, and what follows for all."""
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
    words += f"; of {asked.doubtful:,} doubtful rows {asked.doubtful_failed:,} fail, of {asked.random:,} at random {asked.random_failed:,}"
    fallbacks = ", ".join(f"{reason} {count:,}" for reason, count in asked.fallbacks.items())
    return words + (f"; not scored by it: {fallbacks}" if fallbacks else "")


def text_table(title: str, *headings: str) -> Any:
    """An empty table of Rich's."""
    from rich import box
    from rich.table import Table

    table = Table(title=title or None, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in headings:
        table.add_column(heading, justify="left" if heading in {"", "metric"} else "right", no_wrap=True)
    return table


def headline(evaluation: Evaluation) -> str:
    """How much was done, what was skipped and why, in how long, for how much."""
    done, skipped = evaluation.rows + evaluation.bad_row_count, sum(evaluation.skipped.values())
    text = f"{counted(done - skipped, 'row', grouped=True)} evaluated"
    if len(evaluation.judged) == 1:
        text += f" by {next(iter(evaluation.judged))}"
    elif evaluation.judged:
        text += f" ({', '.join(f'{count:,} by {judge}' for judge, count in evaluation.judged.items())})"
    for words in counted_rows(evaluation):
        text += f", {words}"
    if skipped:
        text += f", {skipped:,} skipped ({', '.join(f'{reason} {count:,}' for reason, count in evaluation.skipped.items())})"
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


def counted_rows(evaluation: Evaluation) -> list[str]:
    """How many rows are refusals, of how many the judge is unsure, and how many had no contexts, in words."""
    counts = ((evaluation.special.get(reason, 0), words) for reason, words in _COUNTS.items())
    return [counted(count, *words, grouped=True) for count, words in counts if count]


def unlabelled_lines(evaluation: Evaluation) -> list[str]:
    """How many scores of each metric have no label, because the judge cannot tell."""
    found = ((one.metric, one.unlabelled) for one in evaluation.summary.values())
    lines = [f"{metric}: {words}: the judge cannot tell" for metric, words in found if words]
    ranks = [one.metric for one in evaluation.summary.values() if one.scored and not one.labelled]
    return lines + ([f"{', '.join(ranks)}: only a rank, without pass and fail"] if ranks else [])


def _worst_answers(evaluation: Evaluation) -> Iterator[Any]:
    """The first responses of the report's order that fail, and where they do."""
    from rich.text import Text

    failing = evaluation.worst_responses
    if failing:
        yield Text("The worst responses" if len(failing) > 1 else "The failing response", style="bold")
        for row in failing[:_WORST_SHOWN]:
            yield from row.described(*row.failing)
        yield Text()


def _not_scored(evaluation: Evaluation) -> list[str]:
    """Why rows have no score, once for all metrics with the same reasons, and without those that the headline has."""
    by_reasons: dict[str, list[str]] = {}
    for summary in evaluation.summary.values():
        by_reasons.setdefault(summary.reasons, []).append(summary.metric)
    if len(by_reasons) == 1:
        named = {*evaluation.skipped.items(), *evaluation.special.items()}
        rest = [f"{reason} {count:,}" for reason, count in summary.not_scored.items() if (reason, count) not in named]
        return [f"not scored: {', '.join(rest)}"] if rest else []
    return [f"not scored by {', '.join(metrics)}: {reasons}" for reasons, metrics in by_reasons.items() if reasons]


def duration(seconds: float) -> str:
    """Seconds as people say them."""
    whole = round(seconds)
    if whole >= _HOUR:
        return f"{whole // _HOUR} h {whole % _HOUR // _MINUTE:02} min"
    return f"{whole // _MINUTE} min {whole % _MINUTE:02} s" if whole >= _MINUTE else f"{whole} s"
