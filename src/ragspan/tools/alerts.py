"""Tells somebody when more, or fewer, answers fail than usual: by a webhook, or by a function.

The latest answers of the process are compared with those before them. What could not be told is logged.
"""

from __future__ import annotations

import contextlib
import json
import math
import threading
import time
import urllib.parse
import urllib.request
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Final, TypeAlias

from ragspan.arguments import Rule
from ragspan.outcomes import Score, ScoredRecord
from ragspan.telemetry.content import ContentPolicy
from ragspan.telemetry.emitter_protocols import ScoreEmitter
from ragspan.telemetry.otel_context import suppressed
from ragspan.telemetry.values import bounded
from ragspan.throttled_log import ThrottledLog

_WINDOW: Final = 100  # the latest answers, whose share is compared
_LEAST_USUAL, _MOST_USUAL = 200, 2000  # answers before them that say what is usual
_DEVIATIONS: Final = 3.0  # standard deviations outside of chance: once in 700 windows that do not overlap
_LEAST_CHANGE: Final = 0.05
_PAUSE: Final = 3600.0  # seconds between two alerts
_EVIDENCE: Final = 5  # answers
_TIMEOUT: Final = 5.0  # seconds
_MAX_TEXT: Final = 500  # characters


@dataclass(frozen=True, kw_only=True)
class Alert:
    """The share of failing answers has left its usual range."""

    text: str
    """For people; chats such as Slack's show a field of this name."""
    share: float
    """Of the latest answers, 0 to 1."""
    usual: float
    """Of those before them."""
    by_metric: dict[str, int]
    """How many of the latest answers fail each metric."""
    evidence: tuple[dict[str, Any], ...]
    """Answers that fail: `record_id`, `trace_id`, `metric` and `score`; and `finding`, `question` and `response` where texts may go."""


OnAlert: TypeAlias = "str | Callable[[Alert], object]"
"""The address of a webhook, which gets the alert as JSON, or a function."""
_ON_ALERT = Rule(
    "the address of a webhook, such as https://hooks.example.com/ragspan, or a function",
    lambda value: callable(value) or (isinstance(value, str) and value.startswith(("http://", "https://"))),
)


@dataclass(kw_only=True, eq=False, repr=False)
class AlertEmitter(ContentPolicy, ScoreEmitter):
    """Watches the share of failing answers.

    Raises:
        ConfigurationError: an argument or the environment has a value that is not allowed.
    """

    on_alert: OnAlert
    score_wait: float = 0.0
    holds_scores = False
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        _ON_ALERT.check("on_alert or RAGSPAN_ALERT_WEBHOOK", self.on_alert)
        super().__post_init__()
        self._failed: deque[tuple[str, ...]] = deque(maxlen=_MOST_USUAL + _WINDOW)
        """The metrics that each answer fails."""
        self._counted: deque[str] = deque(maxlen=_MOST_USUAL)
        """Records; further labels of one may come late."""
        self._evidence: deque[dict[str, Any]] = deque(maxlen=_EVIDENCE)
        self._told_at = -math.inf
        self._thread: threading.Thread | None = None
        self._log = ThrottledLog()

    def emit(self, scored: ScoredRecord) -> None:
        """Count the answer, and tell if the share has left its range."""
        scores = {name: one for name, one in scored.outcomes.items() if isinstance(one, Score) and one.label}
        if not scores or (scored.late and scored.record.record_id in self._counted):
            return
        self._counted.append(scored.record.record_id)
        failing = {name: score for name, score in scores.items() if score.label == "fail"}
        if failing:
            metric, score = min(failing.items(), key=lambda item: item[1].value)
            record, span = scored.record, scored.span or scored.record.parent
            texts = {"question": record.question, "response": record.response} if self.allows() else {}
            texts["finding"] = self.explanation(score)
            trace_id, value = span and format(span.trace_id, "032x"), float(score.value)
            answer = {"record_id": record.record_id, "trace_id": trace_id, "metric": metric, "score": value}
            self._evidence.append(answer | {name: bounded(text, _MAX_TEXT) for name, text in texts.items() if text})
        self._failed.append(tuple(failing))
        before = len(self._failed) - _WINDOW
        if before < _LEAST_USUAL or self.clock() - self._told_at < _PAUSE:
            return
        latest = [self._failed[place] for place in range(-_WINDOW, 0)]
        failures = sum(map(bool, latest))
        share, usual = failures / _WINDOW, (sum(map(bool, self._failed)) - failures) / before
        # Where nothing, or all, failed so far, one more answer of the other kind is assumed: chance may bring it.
        assumed = min(max(usual, 1 / (before + 1)), before / (before + 1))
        deviation = math.sqrt(assumed * (1 - assumed) * (1 / _WINDOW + 1 / before))
        if abs(share - usual) <= max(_DEVIATIONS * deviation, _LEAST_CHANGE):
            return
        self._told_at = self.clock()
        by_metric = Counter(name for failed in latest for name in failed)
        counts = ", ".join(f"{name} {count}" for name, count in by_metric.items())
        alert = Alert(
            text=f"ragspan: {share:.0%} of the latest {_WINDOW} answers fail, usually {usual:.0%} of {before:,} do"
            + (f" ({counts})" if counts else ""),
            share=share,
            usual=usual,
            by_metric=dict(by_metric),
            evidence=tuple(self._evidence),
        )
        thread = threading.Thread(target=self._tell, args=[alert], name="ragspan-alert", daemon=True)
        with contextlib.suppress(RuntimeError):  # the interpreter is ending, or has no thread left
            thread.start()
            self._thread = thread

    def flush(self, timeout: float) -> bool:
        """Wait until what is being told has been."""
        if self._thread is not None:
            self._thread.join(timeout)
        return self._thread is None or not self._thread.is_alive()

    def _tell(self, alert: Alert) -> None:
        """In a thread of its own: neither an address that hangs nor a slow function holds up scores."""
        try:
            with suppressed():
                if callable(self.on_alert):
                    self.on_alert(alert)
                    return
                headers = {"content-type": "application/json"}
                request = urllib.request.Request(self.on_alert, json.dumps(asdict(alert)).encode(), headers)  # noqa: S310
                with urllib.request.urlopen(request, timeout=_TIMEOUT) as reply:  # noqa: S310 - checked as an address
                    reply.read(1)
        except Exception as error:  # noqa: BLE001 - the user's function, or anything on the way to the webhook
            # An address may hold a secret, and an error of the user's function anything.
            whom, why = "on_alert", type(error).__name__
            if isinstance(self.on_alert, str):
                whom = urllib.parse.urlsplit(self.on_alert).netloc.rpartition("@")[2]
                why = str(error) if isinstance(error, OSError) else why
            self._log.report("alert", "an alert did not reach %s: %s", whom, why)
