"""Which answers a judge is asked about, where it is asked about a share of them only.

The embedded judge reads every answer. Of each it is decided once, for all metrics, whether the judge is asked: because the answer
is among the most doubtful ones, or because it is drawn at random, by its trace id and before anything is known of it.
"""

from __future__ import annotations

import random
from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from opentelemetry.metrics import Meter

from ragspan.engine.metric_judges import screens_of
from ragspan.engine.sampling import draw
from ragspan.exceptions import ConfigurationError
from ragspan.metrics.doubt import DOUBTED, USUAL_DOUBTS, doubt_of, judged
from ragspan.metrics.metric import Metric
from ragspan.outcomes import Asked, MetricFailure, Outcome, Score, ScoredRecord, ScreenScore
from ragspan.telemetry import semconv
from ragspan.telemetry.values import clean_name, encodable

RANDOM_PART: Final = 0.25
"""Of the share: drawn before anything is known of the answer. Without it the true rate of failures could not be estimated."""
_DRAW: Final = b"ragspan.share"
_RECENT: Final = 500
"""Answers whose doubts say what is doubtful here."""
_LEAST_SLACK, _MOST_SLACK, _ANSWERS_A_SLACK = 3.0, 15.0, 50
"""By how many answers the judge may be asked about more or fewer than the share at most: few for a new process, then more, for a
threshold that moves little keeps the most doubtful ones. What the random draws give beyond it comes on top."""


def check_share(metrics: Sequence[Metric]) -> None:
    """Raise a `ConfigurationError` unless the embedded judge can decide which answers these metrics' judge is asked about."""
    if not DOUBTED & screens_of(metrics).keys():
        raise ConfigurationError(
            f"judge_share goes by the doubts of {' and '.join(sorted(DOUBTED))}, but neither is among the metrics that ask another"
            " judge than the embedded one, which reads all: name a judge, such as RAGSPAN_JUDGE=openai:gpt-4o-mini"
        )


def beside_screen(outcome: Outcome, screened: Outcome) -> Outcome:
    """The outcome of a judge with what the embedded judge says, whose score stays where the judge gave none itself."""
    if not isinstance(screened, Score) or outcome is screened:
        return outcome
    if isinstance(outcome, MetricFailure):
        return replace(screened, fallback=outcome.error_type)
    if isinstance(outcome, Score) and outcome.fallback is None:
        found = ScreenScore(value=screened.value, label=screened.label, judge=screened.judge)
        return replace(outcome, screen=found)
    return outcome


class DoubtThreshold:
    """Tells the most doubtful answers, by a threshold that follows them. Begins with doubts that are usual."""

    def __init__(self, share: float, *, draw: Callable[[], float] = random.random) -> None:
        random_part = share * RANDOM_PART
        self._share = share
        self._doubtful = (share - random_part) / (1 - random_part)
        """The share of the most doubtful answers that brings the whole about: some of them are drawn at random as well."""
        self._draw = draw
        self._recent = deque(USUAL_DOUBTS)
        self._sorted = sorted(USUAL_DOUBTS)
        self._answers = 0
        self._owed = 0.0
        """By how many answers the judge was asked about fewer than the share so far; negative for more."""

    def choose(self, doubt: float, *, is_drawn: bool) -> Asked | None:
        """Why the judge is asked about an answer of this doubt, 0 to 1, if it is; `is_drawn` if it is one of the random ones."""
        self._answers += 1
        slack = min(_LEAST_SLACK + self._answers / _ANSWERS_A_SLACK, _MOST_SLACK)
        self._owed = min(self._owed + self._share, slack + 1)
        part = 1.0 if self._owed >= slack else self._doubtful * (1 + self._owed / slack)
        # The part of recent answers that are more doubtful; among equals chance decides.
        known, above = len(self._sorted), len(self._sorted) - bisect_right(self._sorted, doubt)
        equal = known - above - bisect_left(self._sorted, doubt)
        rank = (above + self._draw() * (equal + 1)) / (known + 1)
        self._recent.append(doubt)
        insort(self._sorted, doubt)
        if known >= max(len(USUAL_DOUBTS), min(self._answers, _RECENT)):
            del self._sorted[bisect_left(self._sorted, self._recent.popleft())]
        is_doubtful = rank < part
        if is_doubtful or is_drawn:
            self._owed -= 1
        return "doubtful" if is_doubtful else "random" if is_drawn else None


class JudgeShareDecisions:
    """The decisions of an engine about the metrics of these names; `meter` counts labels, from which the true rate is estimated."""

    def __init__(self, share: float, metrics: Iterable[str], meter: Meter) -> None:
        self._random_part = share * RANDOM_PART
        self._metrics = frozenset(metrics)
        self._threshold = DoubtThreshold(share)
        self._labels = meter.create_counter(
            semconv.METRIC_LABELS,
            unit="{answer}",
            description="Answers that a metric applies to, by whether they count as doubtful, and by the label of the judge that is"
            " asked about a share of them.",
        )

    def choose(self, identity: str | None, screened: Mapping[str, Outcome]) -> Asked | None:
        """Why the judge is asked about an answer, if it is. By the identity the random part is drawn; None asks in any case."""
        if identity is None:
            return "random"
        is_drawn, doubt = draw(identity, _DRAW) < self._random_part, doubt_of(screened)
        if doubt is None:
            return "random" if is_drawn else None
        return self._threshold.choose(doubt, is_drawn=is_drawn)

    def count(self, scored: ScoredRecord) -> None:
        """Count what came of an answer."""
        for name in self._metrics & scored.outcomes.keys():
            found = judged(scored.outcomes[name], scored.asked)
            if found is not None:
                part, label = found
                labels = {semconv.PART: part, semconv.GEN_AI_EVALUATION_SCORE_LABEL: label or "unknown"}
                self._labels.add(1, encodable({semconv.GEN_AI_EVALUATION_NAME: clean_name(name), **labels}))
