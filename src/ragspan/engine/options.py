"""The arguments of an engine. They are checked when it is made, so that a wrong one is not found with the first answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from ragspan.arguments import SECONDS, SHARE, SOME_SECONDS, SOME_SHARE, Rule, has_methods, instance, one_of
from ragspan.config import JudgingPlace, Settings, UnknownContextsRule
from ragspan.engine.budget import Budget
from ragspan.engine.judge_share_decisions import check_share
from ragspan.engine.metric_judges import spenders_of
from ragspan.engine.redaction import Redact
from ragspan.engine.sampling import draw, identity_of
from ragspan.engine.worker import ProcessorOptions
from ragspan.exceptions import ConfigurationError
from ragspan.judges.judge_when import NOT_MET, Facts, JudgeWhen
from ragspan.metrics import Metric
from ragspan.records import RagRecord, SpanAnchor
from ragspan.telemetry import Emitter

_LIST = Rule("a list", lambda value: isinstance(value, Sequence) and not isinstance(value, (str, bytes)))
NOT_SAMPLED = "not_sampled"
_NAME = Rule(
    "lower case letters, digits and underscores",
    lambda name: isinstance(name, str) and re.fullmatch(r"[a-z][a-z0-9_]*", name),
)
_METRIC = has_methods("an object with a score method", "score")
_EMITTER = has_methods("an object with the methods start, flush, shutdown", "start", "flush", "shutdown")


@dataclass(frozen=True, kw_only=True)
class Options(ProcessorOptions):
    """What `ScoringEngine` was given; a `ConfigurationError` names a wrong argument, its value and what is allowed."""

    metrics: Sequence[Metric]
    emitters: Sequence[Emitter]
    sample_rate: float
    score_unsampled: bool
    budget: Budget | None
    metric_timeout: float
    judging: JudgingPlace
    redact: Redact | None
    unknown_contexts: UnknownContextsRule
    judge_share: float | None
    judge_when: JudgeWhen | None
    waits_for_budget: bool

    def __post_init__(self) -> None:
        for name in ("metrics", "emitters"):
            _LIST.check_fields(self, name)
            # A copy: what is changed in the list later has not been checked.
            object.__setattr__(self, name, tuple(getattr(self, name)))
        names: list[object] = []
        new = Rule("unlike the names of the other metrics", lambda name: name not in names)
        for position, metric in enumerate(self.metrics):
            _METRIC.check(f"metrics[{position}]", metric)
            its_name = getattr(metric, "name", None)
            for rule in (_NAME, new):
                rule.check(f"metrics[{position}].name", its_name)
            names.append(its_name)
        for position, emitter in enumerate(self.emitters):
            _EMITTER.check(f"emitters[{position}]", emitter)
            SECONDS.check(f"emitters[{position}].score_wait", getattr(emitter, "score_wait", None))
        ProcessorOptions.__post_init__(self)
        SHARE.check_fields(self, "sample_rate")
        SOME_SECONDS.check_fields(self, "metric_timeout")
        one_of("helper", "thread").check_fields(self, "judging")
        one_of("skip", "prompt").check_fields(self, "unknown_contexts")
        SOME_SHARE.or_none().check_fields(self, "judge_share")
        if self.judge_share is not None:
            check_share(self.metrics)
        when = self.judge_when
        for name in when.metrics if when else ():
            one_of(*(metric.name for metric in self.metrics)).check(f"a metric in {when.name if when else ''}", name)
        instance(Budget, "a Budget").or_none().check_fields(self, "budget")
        if self.budget is not None and self.budget.usd_per_day is not None:
            spenders = (spender for metric in self.metrics for spender in spenders_of(metric))
            unknown = next((spender for spender in spenders if spender.price is None), None)
            if unknown is not None:
                raise ConfigurationError(
                    f"budget limits usd_per_day, but what the judge {unknown.name!r} costs is not known: give it "
                    "price=Price(input, output) in dollars for a million tokens, or set RAGSPAN_JUDGE_OPTIONS to "
                    '{"price": [input, output]}'
                )

    def why_not(self, metric: str, record: RagRecord, span: SpanAnchor | None, facts: Facts) -> str | None:
        """The reason why the metric of this name does not score the record; None if it does.

        All metrics go by the same draw of the trace, `span`'s or else the parent's: what a metric with a lower share scores, those
        with a higher one score as well. `facts` are for the conditions.
        """
        trace, when = span or record.parent, self.judge_when
        if trace is not None and not trace.sampled and not self.score_unsampled:
            return NOT_SAMPLED
        if when is not None and not when.chooses(metric, facts):
            return NOT_MET
        rate = self.sample_rate if when is None else when.rates.get(metric, self.sample_rate)
        return None if draw(identity_of(record, span)) < rate else NOT_SAMPLED


def with_named(metrics: Sequence[str | Metric]) -> Sequence[Metric]:
    """The metrics, those that are given by name made with the judge that the environment names; else a `ConfigurationError`."""
    if isinstance(metrics, str) or not any(isinstance(metric, str) for metric in metrics):
        return cast("Sequence[Metric]", metrics)  # what is not a list of metrics is refused with the other arguments
    from ragspan.metrics.metric_catalogue import metrics_from  # which loads the clients of judges

    return metrics_from(Settings.from_environment(), metrics)
