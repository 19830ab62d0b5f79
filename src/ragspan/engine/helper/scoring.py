"""Has the helper score metrics whose judges compute. Each metric of a record is a question of its own.

Guarantees:
- A metric goes there if its judges all say whether they are `cpu_bound`, none of them spends money, and the helper can
  make a copy of it. The application scores all other metrics, and all metrics while there is no helper.
- A metric over which helpers died fails. The application does not try it: that could kill the application as well.
- Time limits and fallbacks stay in the application. A metric that has run out of time is cancelled in the helper.
"""

from __future__ import annotations

import inspect
import itertools
import pickle
from typing import Any

from ragspan.engine.helper import serialization
from ragspan.engine.helper.client import HelperClient
from ragspan.engine.helper.connection import HelperLost, HelperRefusal
from ragspan.engine.metric_judges import are_cpu_bound, spenders_of
from ragspan.exceptions import JudgeError
from ragspan.judges.session import session_of
from ragspan.metrics.metric import Metric
from ragspan.outcomes import Outcome
from ragspan.records import RagRecord
from ragspan.throttled_log import ThrottledLog

_MAX_QUESTIONS = 256  # without an answer: 64 records with four metrics keep the helper busy


class HelperScoring:
    """The metrics of an engine that its helper scores."""

    def __init__(self, log: ThrottledLog) -> None:
        self._log = log
        self._metrics: list[Metric] = []
        self._sessions = itertools.count()
        self.client = HelperClient(self._service, max_questions=_MAX_QUESTIONS, log=log)

    def add(self, metric: Metric) -> int | None:
        """The number under which the helper scores this metric; None if the application scores it."""
        said = are_cpu_bound(metric)
        if not said or None in said or any(spenders_of(metric)) or not inspect.iscoroutinefunction(metric.score):
            return None
        reason = serialization.reason_not_to_send(metric)
        if reason is not None:
            if any(said):
                message = "metric %s is scored in a thread of the application, not in the helper: %s"
                self._log.report(f"unfit {metric.name}", message, metric.name, reason)
            return None
        self._metrics.append(metric)
        return len(self._metrics) - 1

    async def score(self, number: int, record: RagRecord) -> Outcome:
        """The outcome of the metric with this number.

        Raises:
            HelperUnavailable: the application has to score it.
            JudgeError: helpers died over it, or the outcome does not pickle.
        """
        session = session_of(record)
        question = session.get_or_make(self, lambda: (next(self._sessions), serialization.dumps(record)))
        try:
            about, outcome = pickle.loads(await self.client.ask("score", number, *question))  # noqa: S301 - our helper's
        except HelperRefusal as refusal:
            raise JudgeError("helper_refused", str(refusal)) from None
        except HelperLost:
            raise JudgeError("helper_died", "the helper process died while it scored this record") from None
        session.get_or_make("about", lambda: about)
        return outcome  # type: ignore[no-any-return]

    def _service(self) -> tuple[Any, ...]:
        """The metrics all together, so that they share a judge there as they do here."""
        return "MetricService", pickle.dumps(self._metrics)
