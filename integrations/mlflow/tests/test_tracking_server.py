import base64

import pytest

from ragspan import ConfigurationError
from ragspan.delivery.http import HttpClient, session_for
from ragspan_mlflow.emitter import tracking_server


def test_the_environment_names_the_server_and_who_we_are(monkeypatch):
    for name, value in {
        "URI": "https://mlflow.example.com/base/",
        "TOKEN": "t",
        "USERNAME": "ann",
        "PASSWORD": "p",
        "SERVER_CERT_PATH": "/ca.pem",
        "CLIENT_CERT_PATH": "/me.pem",
        "INSECURE_TLS": "true",
    }.items():
        monkeypatch.setenv(f"MLFLOW_TRACKING_{name}", value)
    monkeypatch.setenv("MLFLOW_WORKSPACE", "team")

    found = tracking_server()

    assert found.url == "https://mlflow.example.com/base"
    assert found.headers == {"authorization": "Bearer t", "x-mlflow-workspace": "team"}
    assert (found.certificates, found.client_certificate, found.checks_certificate) == ("/ca.pem", "/me.pem", False)


def test_arguments_go_before_the_environment(monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://elsewhere")
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "other")

    found = tracking_server("http://here:5000", token="mine", timeout=3.0)

    assert (found.url, found.headers, found.timeout) == ("http://here:5000", {"authorization": "Bearer mine"}, 3.0)


def who(header):
    return base64.b64decode(header.removeprefix("Basic ")).decode()


def test_name_and_password_may_have_any_characters(mlflow, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", "änn")
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", "日本")
    client = HttpClient(tracking_server(mlflow.url))
    client.call("GET", "/api/3.0/mlflow/traces/tr-1")
    client.close()

    assert who(mlflow.requests[0].headers["authorization"]) == "änn:日本"


def test_credentials_in_the_address_are_taken_out_of_it_and_shown_nowhere(monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", "somebody")
    found = tracking_server("http://ann:p%40ss@localhost:5000/")

    assert (found.url, who(found.headers["authorization"])) == ("http://localhost:5000", "ann:p@ss")
    assert "Basic" not in repr(found)


def test_other_programs_certificates_are_not_ours(monkeypatch):
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/their/ca.pem")

    def checked(**environment):
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        session = session_for(tracking_server("https://localhost"))
        settings = session.merge_environment_settings("https://localhost", {}, None, None, None)
        session.close()
        return settings["verify"]

    assert checked() == "/their/ca.pem"
    assert checked(MLFLOW_TRACKING_SERVER_CERT_PATH="/ca.pem") == "/ca.pem"
    assert checked(MLFLOW_TRACKING_INSECURE_TLS="true") is False


@pytest.mark.parametrize(
    "uri", ["databricks://profile", "sqlite:///mlflow.db", "mlruns", "http://", "http://h:port", "http://[::1"]
)
def test_only_a_server_will_do(uri):
    with pytest.raises(ConfigurationError, match="http://host:port"):
        tracking_server(uri)


def test_a_server_has_to_be_named():
    with pytest.raises(ConfigurationError, match="MLFLOW_TRACKING_URI"):
        tracking_server()


@pytest.mark.parametrize("timeout", [0, -1.0, float("inf"), float("nan"), "3"])
def test_a_request_has_a_limit(timeout):
    with pytest.raises(ConfigurationError, match="timeout"):
        tracking_server("http://localhost", timeout=timeout)
