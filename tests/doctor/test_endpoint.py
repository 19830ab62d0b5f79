"""What the record's spans show of the endpoint that they were sent to."""

import contextlib
import http.client
import socket
import ssl
import threading

import pytest
import trustme
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from ragspan.doctor.advice import advice_on
from ragspan.doctor.observations import LANGFUSE, MLFLOW, PHOENIX, RECEIVER, cause_of
from ragspan.doctor.watching import NAME

PROTOBUF = "application/x-protobuf"
REJECTED = ExportTraceServiceResponse(partial_success={"rejected_spans": 1, "error_message": "quota exceeded"})


@pytest.fixture
def asked(examined):
    """What is found out about the endpoints by sending a record."""

    def ask(url=None, *, timeout=20.0, **variables):
        address = {} if url is None else {"OTEL_EXPORTER_OTLP_ENDPOINT": url}
        return examined(timeout=timeout, RAGSPAN_METRICS="completeness", **address, **variables).of("endpoint")

    return ask


def test_the_record_is_really_sent_with_the_headers_of_the_environment(asked, otlp_listener):
    findings = asked(otlp_listener.url, OTEL_EXPORTER_OTLP_HEADERS="x-key=open%20sesame")

    assert findings.states() == ["ok"]
    assert findings[0].facts["status"] == 200
    assert NAME in [span.name for span in otlp_listener.spans]
    assert otlp_listener.headers[0]["x-key"] == "open sesame"


def test_without_an_otlp_exporter_there_is_nothing_to_reach(asked):
    assert asked(OTEL_TRACES_EXPORTER="console").states() == ["skipped"]


@pytest.mark.parametrize(
    ("status", "advice"),
    [
        (400, "the receiver cannot read the request"),
        (401, "OTEL_EXPORTER_OTLP_HEADERS has to hold the key"),
        (403, "it now sends none"),
        (404, "/v1/traces is appended to OTEL_EXPORTER_OTLP_ENDPOINT"),
        (405, "must not hold that path itself"),
        (407, "NO_PROXY"),
        (413, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE=64"),
        (415, "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf"),
        (418, "see the receiver's log"),
        (422, "x-mlflow-experiment-id"),
        (500, "the receiver itself has failed"),
        (501, "--backend-store-uri"),
    ],
)
def test_each_status_is_told_with_what_it_means(asked, otlp_listener, status, advice):
    otlp_listener.answers(status, b"not like this", Content_Type="text/plain")

    [finding] = asked(otlp_listener.url)

    assert finding.state == "failed"
    assert f"HTTP {status}: not like this" in finding.found
    assert advice in finding.advice


def test_an_endpoint_of_its_own_is_said_to_be_used_as_it_stands(asked, otlp_listener):
    otlp_listener.answers(404)

    [finding] = asked(OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=otlp_listener.url)

    assert "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is used as it stands" in finding.advice
    assert set(otlp_listener.requests) == {"/"}


@pytest.mark.parametrize(
    ("status", "body", "headers", "words"),
    [
        (302, b"", {"Location": "https://login.example/?next=secret"}, "a redirect to https://login.example/"),
        (200, b"<html></html>", {"Content_Type": "text/html; charset=utf-8"}, "what answers is no OTLP receiver"),
        (
            200,
            REJECTED.SerializeToString(),
            {"Content_Type": PROTOBUF},
            "has rejected what it was sent: quota exceeded",
        ),
        (
            200,
            b'{"partialSuccess": {"rejectedSpans": "1", "errorMessage": "quota exceeded"}}',
            {"Content_Type": "application/json"},
            "has rejected what it was sent: quota exceeded",
        ),
    ],
)
def test_what_the_exporter_takes_for_success_and_is_none_fails(asked, otlp_listener, status, body, headers, words):
    otlp_listener.answers(status, body, **headers)

    [finding] = asked(otlp_listener.url)

    assert finding.state == "failed"
    assert words in finding.found
    assert "secret" not in finding.found


@pytest.mark.parametrize("body", [b"", b"{}", b'{"partialSuccess": {}}', b"OK", b"[1]"])
def test_whatever_else_a_receiver_says_with_200_is_success(asked, otlp_listener, body):
    otlp_listener.answers(200, body, Content_Type="application/json")

    assert asked(otlp_listener.url).states() == ["ok"]


def test_an_endpoint_that_refuses_is_missed_once_however_many_signals_share_it(asked, refused_port):
    [finding] = asked(
        f"http://127.0.0.1:{refused_port}",
        OTEL_TRACES_EXPORTER="otlp",
        OTEL_METRICS_EXPORTER="otlp",
        OTEL_LOGS_EXPORTER="otlp",
    )

    assert finding.state == "failed"
    assert f"127.0.0.1:{refused_port}/v1/traces cannot be reached: nobody listens there" in finding.found
    assert "in a container, that is the container itself" in finding.advice


def test_an_endpoint_that_says_nothing_is_given_up_in_time(asked, silent_port):
    [finding] = asked(f"http://127.0.0.1:{silent_port}", timeout=2.5)

    assert finding.state == "failed"
    assert "it does not answer in time" in finding.found


def test_an_endpoint_that_hangs_up_is_told_as_one(asked, otlp_listener):
    def hang_up(_path):
        raise ConnectionAbortedError

    otlp_listener.answer = hang_up
    [finding] = asked(otlp_listener.url, timeout=2.0)

    assert "closes the connection" in finding.found


def test_a_receiver_for_grpc_is_suspected_where_no_http_is_spoken(asked):
    """The frame with which HTTP/2 servers begin, sent to whoever connects."""
    settings_frame = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def greet():
            with contextlib.suppress(OSError):  # closed at the end of the test
                while True:
                    connection, _ = listening.accept()
                    with connection, contextlib.suppress(OSError):  # one that only looked whether anybody listens
                        connection.sendall(settings_frame + b"\r\n\r\n")
                        connection.shutdown(socket.SHUT_WR)
                        while connection.recv(65_536):
                            pass

        threading.Thread(target=greet, daemon=True).start()
        [finding] = asked(f"http://127.0.0.1:{listening.getsockname()[1]}", timeout=2.5)
        listening.shutdown(socket.SHUT_RDWR)

    assert "does not speak HTTP" in finding.found
    assert "gRPC" in finding.advice


@pytest.mark.parametrize(
    ("symptom", "advised"),
    [
        (
            "http://localhost:4317/v1/traces cannot be reached: nobody listens",
            "4317 is the usual port of OTLP over gRPC",
        ),
        ("localhost:4318 (gRPC) does not take them: error", "4318 is the usual port of OTLP over HTTP"),
        ("http://localhost:4318/v1/traces cannot be reached: nobody listens there", "start the receiver"),
        ("localhost:1 (gRPC) does not take them: StatusCode.UNAUTHENTICATED", "has to hold the key"),
        ("localhost:1 (gRPC) does not take them: SSL_ERROR_SSL", "begin the address with http://"),
        ("localhost:1 (gRPC) does not take them: StatusCode.UNIMPLEMENTED", "no receiver of traces"),
    ],
)
def test_the_other_protocol_and_the_words_of_grpc_are_understood(symptom, advised):
    facts = {"signal": "traces", "signal_variable": "TRACES", "headers_variable": "H", "headers": "none"}

    assert advised in advice_on(f"endpoint failed: traces: {symptom}", facts)


def chained(outer, inner):
    try:
        try:
            raise inner
        except BaseException:
            raise outer from None
    except BaseException as error:
        return error


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (ssl.SSLCertVerificationError(1, "[SSL: CERTIFICATE_VERIFY_FAILED] x"), "its certificate is not trusted"),
        (ssl.SSLError("x"), "no TLS connection can be made"),
        (socket.gaierror(-2, "Name or service not known"), "the host name cannot be resolved"),
        (ConnectionRefusedError("x"), "nobody listens there (connection refused)"),
        (TimeoutError("x"), "it does not answer in time"),
        (ConnectionResetError("x"), "it closes the connection without an answer"),
        (http.client.BadStatusLine("x"), "what answers does not speak HTTP"),
        (OSError("no route"), "the connection fails"),
        (ValueError("x"), None),
    ],
)
def test_each_cause_is_known_by_itself_and_behind_others(error, cause):
    assert cause_of(error) == cause
    assert cause_of(chained(RuntimeError("wrapped"), error)) == cause
    assert cause_of(RuntimeError("wrapped", error)) == cause


def test_causes_in_a_circle_come_to_an_end():
    error = RuntimeError()
    error.__context__ = ValueError()
    error.__context__.__context__ = error

    assert cause_of(error) is None


def test_tls_where_none_is_spoken_is_told_as_one(asked, otlp_listener):
    [finding] = asked(otlp_listener.url.replace("http:", "https:"), timeout=2.5)

    assert "http:// in place of https://" in finding.advice


def test_a_certificate_is_trusted_only_where_its_authority_is_named(asked, make_otlp_listener, tmp_path):
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority, other = trustme.CA(), trustme.CA()
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    other.cert_pem.write_to_path(tmp_path / "other.pem")
    url = make_otlp_listener(tls=tls).url

    [untrusted] = asked(url, timeout=2.5)
    trusted = asked(url, OTEL_EXPORTER_OTLP_CERTIFICATE=str(tmp_path / "ca.pem"))
    [overruled] = asked(url, timeout=2.5, REQUESTS_CA_BUNDLE=str(tmp_path / "other.pem"))

    assert "its certificate is not trusted" in untrusted.found
    assert "OTEL_EXPORTER_OTLP_CERTIFICATE" in untrusted.advice
    assert trusted.states() == ["ok"]
    assert "REQUESTS_CA_BUNDLE overrules" in overruled.found


@pytest.mark.parametrize("url", ["localhost:4318", "http://localhost:port", "tcp://localhost:4318"])
def test_what_is_no_address_is_a_misuse(asked, url):
    [finding] = asked(url)

    assert (finding.state, finding.is_misuse) == ("failed", True)
    assert "http://localhost:4318" in finding.advice


def test_a_proxy_is_named_without_its_password_and_asked(asked, otlp_listener, monkeypatch):
    monkeypatch.delenv("NO_PROXY")
    findings = asked("http://collector.example:4318", HTTP_PROXY=f"http://user:hidden@127.0.0.1:{otlp_listener.port}")

    assert f"go through the proxy http://127.0.0.1:{otlp_listener.port}" in findings[0].found
    assert "hidden" not in repr(findings)
    assert "http://collector.example:4318/v1/traces" in otlp_listener.requests


def test_metrics_and_logs_that_a_tool_does_not_take_are_a_warning_with_what_to_switch_off(asked, otlp_listener):
    otlp_listener.answer = lambda path: (200 if "traces" in path else 405, {"x-phoenix-server-version": "20.26.1"}, b"")

    findings = asked(otlp_listener.url, OTEL_METRICS_EXPORTER="otlp", OTEL_LOGS_EXPORTER="otlp")

    assert sorted(findings.states()) == ["ok", "ok", "warning", "warning"]
    assert "OTEL_METRICS_EXPORTER=none" in findings.text("warning")
    assert "OTEL_LOGS_EXPORTER=none" in findings.text("warning")
    assert "Attributes tab" in findings.text("ok")


@pytest.mark.parametrize(
    ("pages", "path", "backend"),
    [
        ({"/version": (200, b"3.17.2"), "/health": (200, b"OK")}, "", MLFLOW),
        ({"/version": (200, b"3.17.2")}, "", None),
        ({"/": (404, b"404 page not found\n")}, "", RECEIVER),
        ({"/tracing/": (404, b"404 page not found\n")}, "/tracing", RECEIVER),
        ({}, "/api/public/otel", LANGFUSE),
        ({}, "", None),
    ],
)
def test_who_answers_is_told_where_it_can_be(asked, otlp_listener, pages, path, backend):
    otlp_listener.pages = pages

    named = [finding.facts["backend"] for finding in asked(otlp_listener.url + path) if "backend" in finding.facts]

    assert named == ([backend.name] if backend else [])


@pytest.mark.parametrize(
    ("status", "headers", "body", "backend"),
    [
        (422, {"Content_Type": "application/json"}, b'{"detail": "X-MLflow-Experiment-Id is required"}', MLFLOW),
        (200, {"x_phoenix_server_version": "20.26.1"}, b"", PHOENIX),
    ],
)
def test_a_tool_is_known_by_its_reply(asked, otlp_listener, status, headers, body, backend):
    otlp_listener.answers(status, body, **headers)

    assert asked(otlp_listener.url)[-1].facts["backend"] == backend.name
