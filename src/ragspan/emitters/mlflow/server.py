"""Where an MLflow server is, how we sign in there, and what its replies mean."""

from __future__ import annotations

from dataclasses import replace

from ragspan.addresses import basic
from ragspan.config import variable
from ragspan.delivery.http import Endpoint, Reply
from ragspan.delivery.writer import present
from ragspan.exceptions import ConfigurationError

TRACES = "/api/3.0/mlflow/traces"
EXPERIMENTS = "/api/2.0/mlflow/experiments"
_NOT_FOUND = 404


def tracking_server(uri: str | None = None, *, token: str | None = None, timeout: float = 10.0) -> Endpoint:
    """The server of this URI, or else of `MLFLOW_TRACKING_URI`, with the credentials of MLflow's own client.

    Raises:
        ConfigurationError: no server is named, or it is none that is reached by HTTP.
    """
    name = "tracking_uri" if uri else "MLFLOW_TRACKING_URI"
    uri = uri or variable(name)
    if uri is None:
        raise ConfigurationError(
            "no MLflow server is named: give tracking_uri, such as http://localhost:5000, or set MLFLOW_TRACKING_URI"
        )
    token = token or variable("MLFLOW_TRACKING_TOKEN")
    endpoint = Endpoint.at(
        f"{name} (files, databases and Databricks profiles do not work: start `mlflow server`)",
        uri,
        headers=present(
            {"authorization": token and f"Bearer {token}", "x-mlflow-workspace": variable("MLFLOW_WORKSPACE")}
        ),
        timeout=timeout,
        certificates=variable("MLFLOW_TRACKING_SERVER_CERT_PATH"),
        client_certificate=variable("MLFLOW_TRACKING_CLIENT_CERT_PATH"),
        checks_certificate=(variable("MLFLOW_TRACKING_INSECURE_TLS") or "").lower() not in {"true", "1"},
    )
    username = variable("MLFLOW_TRACKING_USERNAME")
    if username is None or "authorization" in endpoint.headers:
        return endpoint
    authorization = basic(username, variable("MLFLOW_TRACKING_PASSWORD") or "")
    return replace(endpoint, headers={**endpoint.headers, "authorization": authorization})


def names_nothing(reply: Reply) -> bool:
    """Whether the trace, assessment or experiment that was asked for does not exist."""
    return reply.status == _NOT_FOUND and reply.body.get("error_code") == "RESOURCE_DOES_NOT_EXIST"
