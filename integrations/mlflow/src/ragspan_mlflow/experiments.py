"""Finds an experiment by its name, and makes it if there is none."""

from __future__ import annotations

from ragspan_mlflow.connection import Connection, Reply

_EXPERIMENTS = "/api/2.0/mlflow/experiments"
_ALREADY_EXISTS = "RESOURCE_ALREADY_EXISTS"


class ExperimentRefused(Exception):  # noqa: N818 - the server did, for good
    """The server has no such experiment and will not make one: it was deleted, or we may not."""


def experiment_id(connection: Connection, name: str) -> str:
    """The id of the experiment of this name, which is made if it is missing.

    Raises:
        ExperimentRefused: there is none, and none can be made.
        Unavailable: the server cannot be reached, or does not know us.
        TimedOut: no answer came in time.
    """
    reply = _find(connection, name)
    if reply.names_nothing:
        created = connection.call("POST", f"{_EXPERIMENTS}/create", {"name": name})
        if created.is_ok:
            return str(created.body["experiment_id"])
        if created.body.get("error_code") == _ALREADY_EXISTS:  # made by another process in this very moment
            reply = _find(connection, name)
    experiment = reply.body.get("experiment", {}) if reply.is_ok else {}
    if experiment.get("lifecycle_stage", "deleted") == "deleted":
        raise ExperimentRefused(f"http_{reply.status}")
    return str(experiment["experiment_id"])


def _find(connection: Connection, name: str) -> Reply:
    return connection.call("GET", f"{_EXPERIMENTS}/get-by-name", query={"experiment_name": name})
