"""The engine: takes captures on the request path and scores them in the background.

Every submitted capture ends in exactly one counted way: scored, nothing to score, or dropped with a reason. Until the first submit
there is no thread. From then on the engine lives until `shutdown`, or as long as the process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from concurrent.futures import Future

from opentelemetry.metrics import MeterProvider

from ragspan.config import JudgingPlace, UnknownContextsRule, is_enabled
from ragspan.engine.budget import Budget
from ragspan.engine.options import Options, with_named
from ragspan.engine.processor import BackgroundProcessor
from ragspan.engine.record_queue import Item
from ragspan.engine.redaction import RedactOption, redact_from
from ragspan.engine.stats import Dropped
from ragspan.engine.worker import Work
from ragspan.judges.judge_when import JudgeWhen
from ragspan.metrics import Metric
from ragspan.outcomes import ScoredRecord
from ragspan.records import Capture
from ragspan.telemetry import Emitter
from ragspan.throttled_log import ThrottledLog

_LOOK_AGAIN = 1.0  # seconds after which somebody who waits makes sure that there is a worker


class ScoringEngine(BackgroundProcessor):
    """Scores captured answers in the background.

    `submit` returns in microseconds, never raises, and may be called from any thread, from a finaliser and from a signal handler.

    Args:
        metrics: what every record is scored by, at the same time; their names must differ. A name such as `"faithfulness"` stands
            for the metric with the judge that `RAGSPAN_JUDGE` names. An `async def score` shares one event loop with all others, so
            it must not block; a plain `def score` runs in a thread and may.
        emitters: where scored records go, in this order. Where none of them has anybody to send scores to, no judge is paid
            for records that nobody awaits: `NotApplicable("not_exported")`.
        queue_size: captures that may wait, at least 1. When the queue is full, the oldest are dropped.
        queue_bytes: bytes of captures that may wait or be in work, at least 1, as the captures' size hints add up.
        concurrency: records that are in work at the same time, at least 1.
        sample_rate: share of the answers that are scored, 0..1, chosen by trace id; the others are emitted as well,
            with `NotApplicable("not_sampled")`.
        score_unsampled: score answers whose trace is not sampled, too.
        budget: what judging may cost, in this process, and what happens when that is spent; None means no limit.
        metric_timeout: seconds after which a metric has failed, more than 0.
        exit_timeout: seconds that the end of the process, SIGTERM included, may wait for scores, 0 or more.
        judging: where judges compute that need the processor rather than a network (the embedded judge, classifiers): in a
            `"helper"` process, so that requests do not wait for it, or in a `"thread"` of this one, as where no helper can be started.
        redact: runs over every text of a record before judges and emitters see it, and over explanations, one at a time in a thread
            of its own; a record for which it fails is dropped. None asks `RAGSPAN_REDACT`; False redacts nothing.
        judge_when: which answers are judged, such as `"tag=prod and latency>2s; faithfulness: 0.1"`: conditions on `tag`,
            `metadata.<key>`, `session`, `user`, `model`, `environment` and `latency`, and a
            rate for each metric, in place of `sample_rate`. A metric has no score of the others, for the reason `judge_when`.
        judge_share: the share of the answers that the metrics' judge is asked about, above 0, up to 1: the embedded judge reads all,
            and the judge is asked about the most doubtful ones, and about a random part, a quarter of the share, by which the true
            rate of failures is estimated. None asks the judge about all answers, and nobody else.
        unknown_contexts: `"prompt"` scores answers without known documents by the text of their prompts: that of tools and of
            messages with the user's role, without the question. `"skip"` does not score them.
        name: tells engines of one process apart, in thread names and in the metrics about ragspan itself.
        meter_provider: where those metrics go; the global one if None.
        waits_for_budget: for tables: wait where a budget's minute is spent, in place of its fallback.

    Raises:
        ConfigurationError: an argument, or `RAGSPAN_ENABLED`, is wrong; the message names it.
    """

    def __init__(
        self,
        *,
        metrics: Sequence[str | Metric],
        emitters: Sequence[Emitter] = (),
        queue_size: int = 2048,
        queue_bytes: int = 64 * 1024 * 1024,
        concurrency: int = 16,
        sample_rate: float = 1.0,
        score_unsampled: bool = False,
        budget: Budget | None = None,
        metric_timeout: float = 60.0,
        exit_timeout: float = 10.0,
        judging: JudgingPlace = "helper",
        redact: RedactOption = None,
        judge_share: float | None = None,
        judge_when: str | JudgeWhen | None = None,
        unknown_contexts: UnknownContextsRule = "skip",
        name: str = "ragspan",
        meter_provider: MeterProvider | None = None,
        waits_for_budget: bool = False,
    ) -> None:
        enabled = is_enabled()
        self._options = Options(
            metrics=with_named(metrics),
            emitters=emitters,
            queue_size=queue_size,
            queue_bytes=queue_bytes,
            concurrency=concurrency,
            sample_rate=sample_rate,
            score_unsampled=score_unsampled,
            budget=budget,
            metric_timeout=metric_timeout,
            exit_timeout=exit_timeout,
            judging=judging,
            redact=redact_from(redact) if enabled else None,
            judge_share=judge_share,
            judge_when=JudgeWhen(judge_when) if isinstance(judge_when, str) else judge_when,
            unknown_contexts=unknown_contexts,
            name=name,
            waits_for_budget=waits_for_budget,
        )
        super().__init__(self._options, is_enabled=enabled, meter_provider=meter_provider)
        for emitter in emitters if enabled else ():
            if callable(join := getattr(emitter, "is_used_by", None)):
                join(self)

    @property
    def metrics(self) -> Sequence[Metric]:
        """What it scores by."""
        return self._options.metrics

    @property
    def emitters(self) -> Sequence[Emitter]:
        """Where scored records go, in this order."""
        return self._options.emitters

    def __repr__(self) -> str:
        metrics = ", ".join(metric.name for metric in self._options.metrics)
        emitters = ", ".join(type(emitter).__name__ for emitter in self._options.emitters)
        return f"<ScoringEngine {self._options.name!r}: {metrics} to {emitters or 'no emitter'}>"

    async def score(
        self, record: Capture, *, sample: bool = True, only: Collection[str] | None = None
    ) -> ScoredRecord | Dropped:
        """Score one record, and return when the emitters have taken all of its outcomes.

        It may be awaited in any event loop of asyncio, by any number of tasks. The record is counted like those that are
        submitted, and meets the same metrics, redaction, sampling and emitters. It waits however full the
        queue is: the queue's bounds and drops are for records that nobody awaits, so limit the number of your own tasks.
        Cancelling the task drops the record, with the reason `cancelled`.

        Args:
            record: a record, or what becomes one.
            sample: False scores it whatever the sample rates and its trace say.
            only: the metrics, by name; None is all.

        Returns:
            The record with the outcomes of all metrics, those that came late included; or why it was dropped.
        """
        result: Future[ScoredRecord | Dropped] = Future()
        item = Item(record, 0, sample=sample, only=only, on_end=result.set_result)
        ended = asyncio.wrap_future(result)
        try:
            self._queue.submit(item)
            while not (await asyncio.wait([ended], timeout=_LOOK_AGAIN))[0]:
                self._queue.ensure_worker()
        except BaseException:
            self._cancel(item)
            raise
        return ended.result()

    def _make_work(self, log: ThrottledLog) -> Work:
        from ragspan.engine.record_scorer import RecordScorer

        return RecordScorer(self._options, self_metrics=self._self_metrics, log=log)
