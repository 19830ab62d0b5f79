import base64

import pytest

from ragspan.delivery import Unavailable
from ragspan_mlflow.connection import Connection, session_for
from ragspan_mlflow.server import TrackingServer


def call(server, **given):
    connection = Connection(TrackingServer(url=server.url, **given))
    try:
        return connection.call("GET", "/api/3.0/mlflow/traces/tr-1")
    finally:
        connection.close()


def test_a_token_goes_before_name_and_password(mlflow):
    call(mlflow, token="t", username="ann", password="p")

    assert mlflow.headers[0]["Authorization"] == "Bearer t"


def test_name_and_password_may_have_any_characters(mlflow):
    call(mlflow, username="änn", password="日本")

    assert base64.b64decode(mlflow.headers[0]["Authorization"].removeprefix("Basic ")).decode() == "änn:日本"


def test_a_netrc_file_does_not_replace_a_token(mlflow, tmp_path, monkeypatch):
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login somebody password else\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))

    call(mlflow, token="t")

    assert mlflow.headers[0]["Authorization"] == "Bearer t"


def test_a_workspace_is_named(mlflow):
    call(mlflow, workspace="team")

    assert mlflow.headers[0]["X-MLFLOW-WORKSPACE"] == "team"


def test_other_programs_certificates_are_not_ours(monkeypatch):
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/their/ca.pem")
    address = "https://localhost"

    def checked(**given):
        session = session_for(TrackingServer(url=address, **given))
        settings = session.merge_environment_settings(address, {}, None, None, None)
        session.close()
        return settings["verify"]

    assert checked(checks_certificate=False) is False
    assert checked(certificates="/ca.pem") == "/ca.pem"
    assert checked() == "/their/ca.pem"


def test_an_exception_names_no_address(mlflow):
    mlflow.close()

    with pytest.raises(Unavailable) as raised:
        call(mlflow, token="secret")

    assert str(raised.value) == "ConnectionError"
    assert raised.value.__suppress_context__


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("3", 3.0), ("-3", 0.0), ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0), ("soon", None), ("", None)],
)
def test_a_server_says_how_long_to_leave_it_alone(mlflow, header, seconds):
    mlflow.answer = lambda method, path: (503, "busy", {"Retry-After": header})

    with pytest.raises(Unavailable) as raised:
        call(mlflow)

    assert raised.value.retry_after == seconds


def test_not_found_says_something_only_if_mlflow_says_it(mlflow):
    assert call(mlflow).names_nothing
    mlflow.answer = lambda method, path: (404, {"detail": "Not Found"})
    assert not call(mlflow).names_nothing


def test_connections_are_kept_open(mlflow):
    connection = Connection(TrackingServer(url=mlflow.url))

    for _ in range(3):
        connection.call("GET", "/api/3.0/mlflow/traces/tr-1")

    assert len(mlflow.connections) == 1
    connection.close()
