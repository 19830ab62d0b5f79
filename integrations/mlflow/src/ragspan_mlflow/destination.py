"""Writes feedback to an MLflow server, so that a repeat leaves one of each.

MLflow has no request for several assessments, and none that replaces one. So each batch begins with a look at its traces,
one request for all of them; then each feedback is created, changed or left alone, several at the same time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from ragspan.delivery import Delivered, Failed, NotThereYet, Refused, WriteResult
from ragspan_mlflow.connection import Connection, Reply, TimedOut
from ragspan_mlflow.feedback import Feedback
from ragspan_mlflow.lanes import in_lanes
from ragspan_mlflow.traces import TRACES, Assessments, Traces

_MAX_FAILURES = 3  # of a batch; from there on it is rather the server than the items
_SERVER_ERROR = 500


class RepeatedFailureError(Exception):
    """The server fails at one feedback after the other."""


class AssessmentsDestination:
    """A connection for feedback.

    Args:
        connection: to the server; closed with the destination.
        lanes: requests at the same time, at least 1.
    """

    def __init__(self, connection: Connection, *, lanes: int) -> None:
        self._connection = connection
        self._traces = Traces(connection, lanes=lanes)
        self._lanes = lanes

    def write(self, batch: Sequence[Feedback]) -> Sequence[WriteResult]:
        """Write the batch; what became of each, in order.

        Raises:
            Unavailable: the server takes nothing at the moment.
            Exception: the server fails.
        """
        traces = self._traces.assessments_of(feedback.trace_id for feedback in batch)
        return in_lanes(partial(self._write, traces=traces, failures=[]), batch, self._lanes)

    def close(self) -> None:
        self._connection.close()

    def _write(self, feedback: Feedback, *, traces: Mapping[str, Assessments], failures: list[Feedback]) -> WriteResult:
        present = traces.get(feedback.trace_id)
        if present is None:
            return NotThereYet()
        try:
            result = _result(self._put(feedback, present))
        except TimedOut:
            result = Failed()
        if isinstance(result, Failed):
            failures.append(feedback)
            if len(failures) >= _MAX_FAILURES:
                raise RepeatedFailureError
        return result

    def _put(self, feedback: Feedback, present: Assessments) -> Reply | None:
        """Make it so; None if it is so already."""
        path = f"{TRACES}/{feedback.trace_id}/assessments"
        written = feedback.find_in(present)
        if written is None:
            return self._connection.call("POST", path, {"assessment": feedback.creation()})
        change = feedback.change_of(written)
        if change is None:
            return None
        same = {"assessment_id": written["assessment_id"], "trace_id": feedback.trace_id}
        body = {"assessment": {**same, **change}, "update_mask": ",".join(change)}
        return self._connection.call("PATCH", f"{path}/{written['assessment_id']}", body)


def _result(reply: Reply | None) -> WriteResult:
    if reply is None or reply.is_ok:
        return Delivered()
    if reply.names_nothing:
        return NotThereYet()  # what was there a moment ago was deleted
    # A server error is also the answer where another process has just created the same: then it is found the next time.
    return Failed() if reply.status >= _SERVER_ERROR else Refused(f"http_{reply.status}")
