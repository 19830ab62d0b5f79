"""What comes out of an evaluated table: figures, and all rows from their file; and how it is shown.

No figure here is NaN: where nothing was scored there is None.
"""

from __future__ import annotations

import heapq
import importlib
import io
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import msgspec
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ragspan.arguments import counted
from ragspan.engine.judge_share_decisions import RANDOM_PART
from ragspan.evaluate.rows import BadRow, EvaluatedRow, named_judge
from ragspan.evaluate.summaries import LEAST_LABELS, MetricSummary, MetricTally, named_counts, reason_of
from ragspan.outcomes import BUDGET_EXHAUSTED, MetricFailure, Score
from ragspan.telemetry.console import outcome_line, text_lines
from ragspan.telemetry.content import MAX_DIMENSION_VALUES
from ragspan.telemetry.semconv import DIMENSION_OTHER
from ragspan.usage import Usage

_WORST_KEPT, _WORST_SHOWN = 20, 3
_BAD_ROWS_KEPT, _ROWS_NAMED = 10_000, 10


@dataclass(kw_only=True, repr=False, eq=False)
class Evaluation:
    """The outcome of evaluating a table. It holds eight bytes a score in memory; `all_rows()` streams the rest."""

    metrics: tuple[str, ...]
    by: Sequence[str] = ()
    """Columns by whose values the figures are given, too."""
    shared: Collection[str] = ()
    """Metrics of a judge that is asked about a share of the rows."""
    rows: int = 0
    """Records that were evaluated: the table's rows but for the bad ones."""
    bad_rows: list[BadRow] = field(default_factory=list)
    """The first ten thousand of them, in the order of the table."""
    bad_row_count: int = 0
    failures: dict[str, str] = field(default_factory=dict)
    """What failures said, by their type: the first of each."""
    not_scored: dict[str, dict[str, list[int]]] = field(default_factory=dict)
    """The first ten rows without a score, by metric and reason."""
    labelled: int = 0
    """Rows that pass or fail at least one metric; by the embedded judge, where another is asked about a share of the rows."""
    failing: int = 0
    """Of these, the rows that fail at least one metric."""
    judged: Counter[str] = field(default_factory=Counter)
    """Rows that have a score of each judge, by its name with the version of its prompts."""
    source: str | None = None
    """The file's name; None for data in memory."""
    labels: dict[int, bool] = field(default_factory=dict)
    """Whether people say that a response is good, by its row; of the rows that have a label."""
    label_name: str = "label"
    """The name of their column."""
    columns: str = ""
    """What was read as what, in a line."""
    judge_share: float | None = None
    """The share of the rows that the judge was asked about; None if it was asked about all."""
    usage: Usage = field(default_factory=Usage)
    """Of all judging, also that of an earlier run that this one resumed."""
    seconds: float = 0.0
    """The duration of this run."""
    resumed: int = 0
    """Rows that were taken over from an earlier run, and not judged again."""
    all_rows: Callable[[], Iterator[EvaluatedRow]] = lambda: iter(())
    """Each row in the order of the table, with its texts and outcomes, read from the file of rows."""

    def __post_init__(self) -> None:
        self._tallies = self._new_tallies()
        self._groups: dict[str, dict[str, dict[str, MetricTally]]] = {name: {} for name in self.by}

    def _new_tallies(self) -> dict[str, MetricTally]:
        return {metric: MetricTally(metric, has_share=metric in self.shared) for metric in self.metrics}

    def add(self, done: EvaluatedRow | BadRow) -> None:
        """Count a row that is done."""
        if isinstance(done, BadRow):
            self.bad_row_count += 1
            if len(self.bad_rows) < _BAD_ROWS_KEPT:
                self.bad_rows.append(done)
            return
        self.rows += 1
        scores, told = done.scores.values(), {one.label for one in done.of_one_judge.values()}
        self.labelled += bool(told - {None})
        self.failing += "fail" in told
        if done.label is not None:
            self.labels[done.row] = done.label
        judges = {named_judge(one) for one in scores} | {one.screen.judge for one in scores if one.screen}
        self.judged.update(judge for judge in judges if judge is not None)
        counting = [self._tallies]
        for name, known in self._groups.items():
            value = done.record.metadata.get(name)
            if isinstance(value, (str, int, float)):
                key = str(value) if str(value) in known or len(known) < MAX_DIMENSION_VALUES else DIMENSION_OTHER
                counting.append(known.setdefault(key, self._new_tallies()))
        for metric, outcome in done.outcomes.items():
            for tallies in counting:
                tallies[metric].add(outcome, done.asked)
            self.usage += outcome.usage or Usage()
            if isinstance(outcome, MetricFailure):
                self.failures.setdefault(outcome.error_type, outcome.message)
            if not isinstance(outcome, Score):
                first = self.not_scored.setdefault(metric, {}).setdefault(reason_of(outcome), [])
                first += [done.row] if len(first) < _ROWS_NAMED else []

    @cached_property
    def summary(self) -> Mapping[str, MetricSummary]:
        """The figures of each metric."""
        return {metric: tally.summary() for metric, tally in self._tallies.items()}

    @cached_property
    def by_dimension(self) -> Mapping[str, Mapping[str, Mapping[str, MetricSummary]]]:
        """By column of `by`, value and metric; at most 50 values of a column, then `_OTHER`."""
        return {
            name: {
                value: {metric: tally.summary() for metric, tally in tallies.items()}
                for value, tallies in sorted(values.items())
            }
            for name, values in self._groups.items()
            if values
        }

    def __str__(self) -> str:
        """The figures of each metric as a table, and what was done."""
        written = io.StringIO()
        print_parts(parts(self), file=written, width=120)
        return "\n".join(line.rstrip() for line in written.getvalue().strip("\n").splitlines())

    __repr__ = __str__

    @property
    def is_scored(self) -> bool:
        """Whether any metric has a score of the judge that was to give it, or finds a refusal right: then the judge works."""
        return any(one.settled or (one.asked and one.asked.scored) for one in self.summary.values())

    @property
    def has_passing(self) -> bool:
        """Whether metrics failed on rows, or the budget was spent: `resume` judges these again."""
        return any(
            one.failed or BUDGET_EXHAUSTED in one.not_scored or (one.asked and one.asked.fallbacks)
            for one in self.summary.values()
        )

    @property
    def why_not_scored(self) -> str:
        """Why rows have no score, in words: what failures said, and the reasons that are none."""
        reasons: Counter[str] = Counter()
        for summary in self.summary.values():
            reasons |= Counter(summary.not_scored) | Counter(summary.asked.fallbacks if summary.asked else {})
        if self.bad_row_count:
            reasons["unreadable"] = self.bad_row_count
        said = {reason: f" ({self.failures[reason]})" for reason in reasons if self.failures.get(reason)}
        listed = [f"{reason} {count:,}{said.get(reason, '')}" for reason, count in reasons.most_common()]
        return ", ".join(listed) or "there are no answers"

    def figures(self) -> dict[str, Any]:
        """All that is counted, in plain data: what `--json` writes and a report shows."""
        unsaid = {"by", "shared", "labels", "all_rows"}
        names = ({one.name for one in fields(self)} | {"summary", "by_dimension"}) - unsaid
        found = {name: getattr(self, name) for name in sorted(names)} | {"judged": dict(self.judged.most_common())}
        return dict(msgspec.to_builtins(found))

    def to_pandas(self) -> Any:
        """A line for each row: its number, id, texts and metadata, and three columns a metric.

        These are `faithfulness`, `faithfulness_label` and `faithfulness_reason` (the judge's words, or why there is no score), and
        `faithfulness_judge` where a judge was asked about a share of the rows. The index counts the rows of the table from 0, so
        that the frame can be joined with the table's own.

        Raises:
            ImportError: pandas is not installed.
        """
        pandas = importlib.import_module("pandas")
        lines: dict[int, dict[str, Any]] = {}
        said = ("explanation", "reason", "detail", "error_type", "message")
        for row in self.all_rows():
            record = row.record
            texts = None if record.contexts is None else [one.text for one in record.contexts]
            line = {"row": row.row, "record_id": record.record_id, "question": record.question, "contexts": texts}
            lines[row.row - 1] = line = {**line, "response": record.response, **record.metadata}
            for metric, outcome in row.outcomes.items():
                score = row.scores.get(metric)
                line[metric], line[f"{metric}_label"] = score and float(score.value), score and score.label
                reasons = [reason for one in said if (reason := getattr(outcome, one, None))]
                line[f"{metric}_reason"] = ": ".join(reasons) or None
                line |= {} if self.judge_share is None else {f"{metric}_judge": score and score.judge}
        return pandas.DataFrame(list(lines.values()), index=list(lines))


# In words


def print_parts(shown: Iterable[Any], **where: Any) -> None:
    """Print texts, whose lines are not broken, and tables."""
    console = Console(highlight=False, markup=False, **where)
    for part in shown:
        console.print(part, soft_wrap=not isinstance(part, Table))


def parts(evaluation: Evaluation, *, with_worst: bool = False) -> Iterator[Table | Text | str]:
    """The table of figures, the worst responses, why rows lack a score or a verdict, and what was done."""
    summaries = evaluation.summary.values()
    figures = text_table("metric", "mean", "median", "min", "max", "std", "scored", "passed")
    for one in summaries:
        numbers = (one.mean, one.median, one.minimum, one.maximum, one.standard_deviation)
        figures.add_row(one.metric, *_cells(one, *numbers))
    yield figures
    for column, values in evaluation.by_dimension.items():
        groups = text_table(column, "metric", "mean", "scored", "passed")
        for value, one in ((value, one) for value, found in values.items() for one in found.values()):
            groups.add_row(value, one.metric, *_cells(one, one.mean))
        yield groups
    yield from share_lines(evaluation)
    if with_worst and (evaluation.failing or evaluation.judge_share):
        yield from _worst(evaluation)
    yield from bad_row_lines(evaluation)
    for one in summaries:
        if one.unlabelled:
            yield f"{one.metric}: {one.unlabelled}: the judge cannot tell"
        if one.not_scored:
            first = evaluation.not_scored[one.metric]
            named = (
                f"{reason} {count:,} (row {', '.join(map(str, first[reason]))}{', ...' * (count > _ROWS_NAMED)})"
                for reason, count in one.not_scored.items()
            )
            yield f"{one.metric}: not scored: {', '.join(named)}"
    if evaluation.not_scored:
        yield "What they mean: https://github.com/ragspan/ragspan/blob/main/docs/attributes.md#why-there-is-no-score"
    if ranks := [one.metric for one in summaries if one.scored and not one.labelled]:
        yield f"{', '.join(ranks)}: no label, so no answer passes or fails by it"
    yield headline(evaluation)


def bad_row_lines(evaluation: Evaluation) -> Iterator[str]:
    """Why rows could not be read: the first of them, and how many more there are."""
    yield from (f"skipped {bad}" for bad in evaluation.bad_rows[:_ROWS_NAMED])
    if (more := evaluation.bad_row_count - _ROWS_NAMED) > 0:
        yield f"... and {counted(more, 'more row', grouped=True)}"


def _worst(evaluation: Evaluation) -> Iterator[Text | str]:
    failing: dict[str | None, EvaluatedRow] = {}  # each response once
    rows = (row for row in evaluation.all_rows() if row.failing)
    for row in heapq.nsmallest(_WORST_KEPT, rows, key=lambda row: row.failure_rank):
        failing.setdefault(row.record.response, row)
    if failing:
        yield Text("The worst responses" if len(failing) > 1 else "The failing response", style="bold")
        for row in list(failing.values())[:_WORST_SHOWN]:
            yield from described(row, *row.failing)
        yield ""


def described(row: EvaluatedRow, *metrics: str) -> Iterator[Text]:
    """The row with its texts, and what these metrics say of it, in lines for a terminal."""
    record_id = row.record.record_id
    yield Text(f"row {row.row:,}" + ("" if record_id == f"row-{row.row}" else f" ({record_id})"))
    yield from text_lines(row.record)
    for metric in metrics:
        outcome = row.outcomes[metric]
        explanation = outcome.explanation if isinstance(outcome, Score) else None
        yield Text("  ").append_text(outcome_line(metric, outcome, explanation))


def _cells(one: MetricSummary, *numbers: float | None) -> list[str]:
    """The numbers, how many rows are scored, and the share of the labelled ones that passes."""
    passed = f"{one.passed / one.labelled:.0%}" if one.labelled else "-"
    passed += f" of {one.labelled:,}" if 0 < one.labelled < one.scored else ""
    return [*("-" if number is None else f"{number:.3f}" for number in numbers), f"{one.scored:,}", passed]


def text_table(*headings: str) -> Table:
    """An empty table of Rich's, narrow enough for a terminal of 80 columns."""
    found = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for heading in headings:
        is_left = heading in {"metric", headings[0]}
        found.add_column(heading, justify="left" if is_left else "right", no_wrap=not is_left, overflow="fold")
    return found


def share_lines(evaluation: Evaluation) -> list[str]:
    """Whose the figures of the table are, and what the judge says that was asked about a share of the rows; else nothing."""
    shared = {one.metric: one.asked for one in evaluation.summary.values() if one.asked is not None}
    if (share := evaluation.judge_share) is None:
        return []
    who = ", ".join(dict.fromkeys(asked.judge for asked in shared.values() if asked.judge)) or "the judge"
    part = f"{100 * share:.3g}% of them, the most doubtful ones and {100 * share * RANDOM_PART:.3g}% at random"
    lines = [f"Above: the embedded judge's figures, over all rows. Asked about {part}, {who} says:"]
    for metric, asked in shared.items():
        words = f"no estimate for all rows, which takes {LEAST_LABELS} at random (about 700 rows at a share of 0.2)"
        if (rate := asked.failures) is not None:
            interval = f"({rate.lower:.1%} to {rate.upper:.1%})"
            words = f"{rate.value:.1%} of all rows fail by {asked.judge}, estimated {interval}"
        words += f"; it scored {asked.doubtful:,} doubtful rows, and {asked.random:,} at random"
        words += f"; not scored by it: {named_counts(asked.fallbacks)}" if asked.fallbacks else ""
        lines.append(f"{metric}: {words}")
    return [*lines, ""]


def headline(evaluation: Evaluation) -> str:
    """How much was done, by whom, in how long, for how much."""
    text = f"{counted(evaluation.rows, 'row', grouped=True)} evaluated"
    if len(evaluation.judged) == 1:
        text += f" by {next(iter(evaluation.judged))}"
    elif evaluation.judged:
        text += f": {', '.join(f'{count:,} by {judge}' for judge, count in evaluation.judged.most_common())}"
        text += " (some by more than one)" if sum(evaluation.judged.values()) > evaluation.rows else ""
    text += f", {evaluation.resumed:,} of them in an earlier run" if evaluation.resumed else ""
    text += f", {evaluation.bad_row_count:,} unreadable" if evaluation.bad_row_count else ""
    text += f", {evaluation.seconds:,.0f} s"
    usage = evaluation.usage
    if usage.requests:
        tokens = usage.input_tokens + usage.output_tokens
        text += f"; {counted(usage.requests, 'request', grouped=True)}, {tokens:,} tokens"
    text += f", ${usage.usd:.4f}" if usage.usd is not None else ""
    return text + (", the earlier run's included" if evaluation.resumed and usage.requests else "")
