import pytest

from ragspan import ConfigurationError
from ragspan_mlflow.server import TrackingServer


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

    assert TrackingServer.from_environment() == TrackingServer(
        url="https://mlflow.example.com/base",
        token="t",
        username="ann",
        password="p",
        workspace="team",
        certificates="/ca.pem",
        client_certificate="/me.pem",
        checks_certificate=False,
    )


def test_arguments_go_before_the_environment(monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://elsewhere")
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "other")

    server = TrackingServer.from_environment("http://here:5000", token="mine", timeout=3.0)

    assert (server.url, server.token, server.timeout) == ("http://here:5000", "mine", 3.0)


def test_credentials_in_the_address_are_taken_out_of_it():
    server = TrackingServer(url="http://ann:p%40ss@localhost:5000/")

    assert (server.url, server.username, server.password) == ("http://localhost:5000", "ann", "p@ss")


def test_secrets_are_not_shown():
    server = TrackingServer(url="http://ann:secret1@localhost", token="secret2")

    assert "secret" not in repr(server)


@pytest.mark.parametrize(
    "uri",
    [
        "databricks",
        "databricks://profile",
        "sqlite:///mlflow.db",
        "file:///mlruns",
        "mlruns",
        "http://",
        "http://h:port",
    ],
)
def test_only_a_server_will_do(uri):
    with pytest.raises(ConfigurationError, match="http://host:port"):
        TrackingServer.from_environment(uri)


def test_a_server_has_to_be_named():
    with pytest.raises(ConfigurationError, match="MLFLOW_TRACKING_URI"):
        TrackingServer.from_environment()


@pytest.mark.parametrize("timeout", [0, -1.0, float("inf"), float("nan")])
def test_a_request_has_a_limit(timeout):
    with pytest.raises(ConfigurationError, match="timeout"):
        TrackingServer(url="http://localhost", timeout=timeout)
