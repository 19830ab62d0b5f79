import base64

import pytest

from ragspan import ConfigurationError
from ragspan.tools.mlflow import tracking_server


def test_the_environment_names_the_server_and_who_we_are_and_arguments_go_before_it(monkeypatch):
    for name, value in {
        "URI": "https://mlflow.example.com/base/",
        "TOKEN": "t",
        "USERNAME": "ann",
        "PASSWORD": "p",
    }.items():
        monkeypatch.setenv(f"MLFLOW_TRACKING_{name}", value)
    monkeypatch.setenv("MLFLOW_WORKSPACE", "team")

    found, given = tracking_server(), tracking_server("http://here:5000", timeout=3.0)

    assert found.url == "https://mlflow.example.com/base"
    assert found.headers == {"authorization": "Bearer t", "x-mlflow-workspace": "team"}
    assert (given.url, given.headers["authorization"], given.timeout) == ("http://here:5000", "Bearer t", 3.0)


def who(header):
    return base64.b64decode(header.removeprefix("Basic ")).decode()


def test_credentials_are_those_of_the_address_or_else_of_the_environment_and_shown_nowhere(monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_TOKEN")
    monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", "änn")
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", "日本")
    found, given = tracking_server("http://localhost:5000/"), tracking_server("http://ann:p%40ss@localhost:5000/")

    assert who(found.headers["authorization"]) == "änn:日本"
    assert (given.url, who(given.headers["authorization"])) == ("http://localhost:5000", "ann:p@ss")
    assert "Basic" not in repr(given)


NO_ADDRESS = (
    "tracking_uri or mlflow= of configure (files, databases and Databricks profiles do not work: start `mlflow "
)
NO_SERVER = "no MLflow server is named: give tracking_uri, such as http://localhost:5000, or set MLFLOW_TRACKING_URI"


@pytest.mark.parametrize(
    "uri", ["databricks://profile", "sqlite:///mlflow.db", "mlruns", "http://", "http://h:port", "http://[::1", None]
)
def test_only_a_server_will_do(uri):
    with pytest.raises(ConfigurationError) as refused:
        tracking_server(uri)
    assert str(refused.value).startswith(NO_ADDRESS if uri else NO_SERVER)
