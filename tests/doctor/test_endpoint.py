"""What the record's spans show of the endpoint that they were sent to."""

import ssl

import pytest
import trustme
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from ragspan.doctor.endpoint_findings import code_of_grpc, code_of_silence
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
    ("status", "code"),
    [
        (400, "endpoint_cannot_read"),
        (401, "endpoint_wants_key"),
        (404, "endpoint_wrong"),
        (405, "endpoint_wrong"),
        (413, "endpoint_too_large"),
        (415, "endpoint_cannot_read"),
        (418, "endpoint_rejects"),
        (422, "endpoint_wants_header"),
        (500, "endpoint_failed"),
        (501, "endpoint_takes_no_spans"),
    ],
)
def test_each_status_is_told_with_what_it_means(asked, otlp_listener, status, code):
    otlp_listener.answers(status, b"not like this", Content_Type="text/plain")

    [finding] = asked(otlp_listener.url)

    assert (finding.state, finding.code, finding.facts["status"]) == ("failed", code, status)
    assert f"HTTP {status}: not like this" in finding.found


def test_a_signals_own_endpoint_is_used_unchanged(asked, otlp_listener):
    otlp_listener.answers(404)

    [finding] = asked(OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=otlp_listener.url)

    assert finding.code == "traces_endpoint_wrong"
    assert set(otlp_listener.requests) == {"/"}


@pytest.mark.parametrize(
    ("status", "body", "headers", "code", "words"),
    [
        (
            302,
            b"",
            {"Location": "https://login.example/?next=secret"},
            "endpoint_redirects",
            "https://login.example/",
        ),
        (200, b"<html></html>", {"Content_Type": "text/html; charset=utf-8"}, "endpoint_wrong", "web page"),
        (200, REJECTED.SerializeToString(), {"Content_Type": PROTOBUF}, "endpoint_rejects", "quota exceeded"),
    ],
)
def test_what_the_exporter_takes_for_success_and_is_none_fails(
    asked, otlp_listener, status, body, headers, code, words
):
    otlp_listener.answers(status, body, **headers)

    [finding] = asked(otlp_listener.url)

    assert (finding.state, finding.code) == ("failed", code)
    assert words in finding.found
    assert "secret" not in finding.found


@pytest.mark.parametrize("body", [b"", b"{}", b"OK"])
def test_whatever_else_a_receiver_says_with_200_is_success(asked, otlp_listener, body):
    otlp_listener.answers(200, body, Content_Type="application/json")

    assert asked(otlp_listener.url).states() == ["ok"]


def test_an_endpoint_that_refuses_is_told_with_what_may_be_wrong(asked, refused_port):
    [finding] = asked(f"http://127.0.0.1:{refused_port}")

    assert (finding.state, finding.code) == ("failed", "endpoint_refused")
    assert f"127.0.0.1:{refused_port}/v1/traces" in finding.found


def hang_up(_path):
    raise ConnectionAbortedError


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("http://127.0.0.1:{silent}", "endpoint_unreachable"),
        ("http://127.0.0.1:{port}", "endpoint_unreachable"),
        ("https://127.0.0.1:{port}", "endpoint_no_tls"),
        *[(url, "endpoint_no_address") for url in ("localhost:4318", "tcp://localhost:4318", "http://localhost:port")],
    ],
)
def test_an_endpoint_that_cannot_be_reached_is_reported_with_its_cause(asked, otlp_listener, silent_port, url, code):
    otlp_listener.answer = hang_up
    [finding] = asked(url.format(silent=silent_port, port=otlp_listener.port), timeout=5.0)

    assert (finding.state, finding.code) == ("failed", code)
    assert finding.is_misuse == (code == "endpoint_no_address")


def test_a_certificate_is_trusted_only_where_its_authority_is_named(asked, make_otlp_listener, tmp_path):
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority = trustme.CA()
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    url = make_otlp_listener(tls=tls).url

    [untrusted] = asked(url, timeout=10.0)

    assert untrusted.code == "endpoint_untrusted"
    assert asked(url, OTEL_EXPORTER_OTLP_CERTIFICATE=str(tmp_path / "ca.pem")).states() == ["ok"]


@pytest.mark.parametrize(
    ("url", "cause", "code"),
    [
        ("http://localhost:4317/v1/traces", "refused", "endpoint_is_for_grpc"),
        ("http://localhost:4317/v1/traces", "no_http", "endpoint_is_for_grpc"),
        ("https://localhost:4317/v1/traces", "untrusted", "endpoint_untrusted"),
        ("http://localhost:4318/v1/traces", "refused", "endpoint_refused"),
        ("http://localhost:1", "no_http", "endpoint_no_http"),
        ("http://no.such.host/v1/traces", "unresolved", "endpoint_unresolved"),
        ("http://localhost:port", None, "endpoint_unreachable"),
    ],
)
def test_a_silent_endpoint_is_told_by_its_cause_and_its_port(url, cause, code):
    assert code_of_silence(url, cause) == code


@pytest.mark.parametrize(
    ("url", "said", "code"),
    [
        ("localhost:4318", "StatusCode.UNAVAILABLE", "endpoint_is_for_http"),
        ("localhost:1", "StatusCode.UNAUTHENTICATED", "endpoint_wants_key"),
        ("http://localhost:4318", "StatusCode.PERMISSION_DENIED", "endpoint_wants_key"),
        ("localhost:1", "StatusCode.UNAVAILABLE, details: SSL_ERROR_SSL", "grpc_no_tls"),
        ("localhost:1", "StatusCode.UNAVAILABLE, details: Connection refused", "endpoint_refused"),
        ("localhost:1", "StatusCode.INTERNAL", "endpoint_unreachable"),
    ],
)
def test_a_grpc_endpoint_is_told_by_its_status(url, said, code):
    assert code_of_grpc(url, said) == code


def test_a_proxy_is_named_without_its_password_and_asked(asked, otlp_listener, monkeypatch):
    monkeypatch.delenv("NO_PROXY")
    findings = asked("http://collector.example:4318", HTTP_PROXY=f"http://user:hidden@127.0.0.1:{otlp_listener.port}")

    assert f"through the proxy http://127.0.0.1:{otlp_listener.port}" in findings[0].found
    assert "hidden" not in repr(findings)
    assert "http://collector.example:4318/v1/traces" in otlp_listener.requests
