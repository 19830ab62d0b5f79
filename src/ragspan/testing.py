"""Tools for the tests of ragspan's users: what keeps records and scores, and an assertion.

sink = RecordingSink()
chain.invoke(question, config={"callbacks": [RagspanCallbackHandler(sink=sink)]})
assert sink.records()[0].response == "..."
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ragspan.arguments import SHARE, counted
from ragspan.exceptions import TableError
from ragspan.judges.judge_catalogue import JudgeChoice
from ragspan.outcomes import ScoredRecord
from ragspan.records import Capture, RagRecord
from ragspan.telemetry.emitter_protocols import ScoreEmitter

__all__ = ["RecordingEmitter", "RecordingSink", "assert_scores"]


class RecordingSink:
    """Keeps captures, and makes records of them as a worker would."""

    def __init__(self) -> None:
        self._captures: deque[Capture] = deque()

    def submit(self, capture: Capture) -> None:
        self._captures.append(capture)

    def records(self) -> list[RagRecord]:
        """The records of the captures since the last call, without those that have nothing to score."""
        captures = [self._captures.popleft() for _ in range(len(self._captures))]
        return [record for capture in captures if (record := capture.to_record()) is not None]


@dataclass
class RecordingEmitter(ScoreEmitter):
    """Keeps scored records, in the order in which they were emitted."""

    score_wait: float = 10.0
    scored: list[ScoredRecord] = field(default_factory=list)
    on_emit: Callable[[ScoredRecord], None] | None = None
    """Called with each record, for instance to set an event."""

    def emit(self, scored: ScoredRecord) -> None:
        self.scored.append(scored)
        if self.on_emit is not None:
            self.on_emit(scored)


def assert_scores(
    records: Any,
    judge: JudgeChoice | None = None,
    *,
    passing: Mapping[str, float] | None = None,
    none_below: Mapping[str, float] | None = None,
    min_scored: float = 0.5,
    **minimums: float,
) -> None:
    """Fail a test unless the scores of each named metric are as good as they should be. It blocks a running event loop.

        assert_scores([RagRecord(question=..., contexts=[...], response=...)], faithfulness=0.8)
        assert_scores(records, passing={"faithfulness": 0.9}, none_below={"completeness": 0.3})

    Args:
        records: as for `ragspan.evaluate.evaluate`: records, dictionaries, a data frame, a path.
        judge: a judge, a name such as `"openai:gpt-4o-mini"`, or a list for a jury; by default that of `RAGSPAN_JUDGE`.
        passing: the share of the scored records that should pass, from 0 to 1, by metric.
        none_below: the score that each record should have at least, from 0 to 1, by metric.
        min_scored: the share of the records that should have a score, from 0 to 1; refusals that the judge finds right count.
        minimums: means from 0 to 1 by metric.

    Raises:
        AssertionError: scores are lower, or too few records have one; the message has the lowest scores and their reasons.
        ConfigurationError: there is no such metric.
        TableError: one of the records cannot be read.
    """
    __tracebackhide__ = True  # pytest shows the line of the test, and not this one
    from ragspan.evaluate.gates import Gate, Kind, check_gates, lowest
    from ragspan.evaluate.scoring import evaluate
    from ragspan.metrics.metric_catalogue import metric_names, require_known

    asked: dict[Kind, Mapping[str, float]] = {
        "mean": minimums,
        "passing": passing or {},
        "none_below": none_below or {},
    }
    gates = [Gate(metric=metric, kind=kind, minimum=least) for kind in asked for metric, least in asked[kind].items()]
    SHARE.check("min_scored", min_scored)
    if not gates:
        raise TypeError("assert_scores needs a metric and the mean it should have, such as faithfulness=0.8")
    for gate in gates:
        require_known(gate.metric, metric_names())
    evaluation = evaluate(records, list(dict.fromkeys(gate.metric for gate in gates)), judge=judge)
    bad = evaluation.bad_rows
    if bad:
        raise TableError(f"{counted(evaluation.bad_row_count, 'record')} cannot be evaluated; the first is {bad[0]}")
    failed = [result for result in check_gates(evaluation, gates, min_scored=min_scored) if result.trouble]
    if failed:
        lines = [line for result in failed for line in (result.trouble, *lowest(evaluation, result.gate))]
        raise AssertionError("\n".join(dict.fromkeys(filter(None, lines))))
