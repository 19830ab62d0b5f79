"""What the record's spans show of the endpoint that they were sent to."""

import ssl

import pytest
import trustme
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from ragspan.doctor.advice import advice_on
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
        (401, "OTEL_EXPORTER_OTLP_HEADERS (OTEL_EXPORTER_OTLP_TRACES_HEADERS replaces it) has to contain the key"),
        (404, "/v1/traces is appended to OTEL_EXPORTER_OTLP_ENDPOINT"),
        (405, "must not contain that path itself"),
        (413, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE=64"),
        (415, "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf"),
        (418, "see the receiver's log"),
        (422, "x-mlflow-experiment-id"),
        (500, "the receiver, or a proxy in front of it, has failed"),
        (501, "--backend-store-uri"),
    ],
)
def test_each_status_is_told_with_what_it_means(asked, otlp_listener, status, advice):
    otlp_listener.answers(status, b"not like this", Content_Type="text/plain")

    [finding] = asked(otlp_listener.url)

    assert finding.state == "failed"
    assert f"HTTP {status}: not like this" in finding.found
    assert advice in finding.advice


def test_a_signals_own_endpoint_is_used_unchanged(asked, otlp_listener):
    otlp_listener.answers(404)

    [finding] = asked(OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=otlp_listener.url)

    assert "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is used unchanged" in finding.advice
    assert set(otlp_listener.requests) == {"/"}


@pytest.mark.parametrize(
    ("status", "body", "headers", "words"),
    [
        (302, b"", {"Location": "https://login.example/?next=secret"}, "a redirect to https://login.example/"),
        (200, b"<html></html>", {"Content_Type": "text/html; charset=utf-8"}, "this is not an OTLP receiver"),
        (200, REJECTED.SerializeToString(), {"Content_Type": PROTOBUF}, "rejected the data: quota exceeded"),
    ],
)
def test_what_the_exporter_takes_for_success_and_is_none_fails(asked, otlp_listener, status, body, headers, words):
    otlp_listener.answers(status, body, **headers)

    [finding] = asked(otlp_listener.url)

    assert finding.state == "failed"
    assert words in finding.found
    assert "secret" not in finding.found


@pytest.mark.parametrize("body", [b"", b"{}", b"OK"])
def test_whatever_else_a_receiver_says_with_200_is_success(asked, otlp_listener, body):
    otlp_listener.answers(200, body, Content_Type="application/json")

    assert asked(otlp_listener.url).states() == ["ok"]


def test_an_endpoint_that_refuses_is_told_with_what_may_be_wrong(asked, refused_port):
    [finding] = asked(f"http://127.0.0.1:{refused_port}")

    assert finding.state == "failed"
    assert f"127.0.0.1:{refused_port}/v1/traces cannot be reached: nobody listens there" in finding.found
    assert "in a container, localhost is the container itself" in finding.advice


def hang_up(_path):
    raise ConnectionAbortedError


@pytest.mark.parametrize(
    ("url", "words", "advice"),
    [
        ("http://127.0.0.1:{silent}", "it does not answer in time", "firewalls in between"),
        ("http://127.0.0.1:{port}", "it closes the connection", "the receiver's log"),
        ("https://127.0.0.1:{port}", "no TLS connection can be made", "http:// in place of https://"),
        *[
            (url, "it is not an address", "http://localhost:4318")
            for url in ("localhost:4318", "tcp://localhost:4318", "http://localhost:port")
        ],
    ],
)
def test_an_endpoint_that_cannot_be_reached_is_reported_with_its_cause(
    asked, otlp_listener, silent_port, url, words, advice
):
    otlp_listener.answer = hang_up
    [finding] = asked(url.format(silent=silent_port, port=otlp_listener.port), timeout=5.0)

    assert finding.state == "failed"
    assert f"cannot be reached: {words}" in finding.found
    assert advice in finding.advice
    assert finding.is_misuse == ("not an address" in words)


def test_a_certificate_is_trusted_only_where_its_authority_is_named(asked, make_otlp_listener, tmp_path):
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority = trustme.CA()
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    url = make_otlp_listener(tls=tls).url

    [untrusted] = asked(url, timeout=10.0)

    assert "its certificate is not trusted" in untrusted.found
    assert "OTEL_EXPORTER_OTLP_CERTIFICATE" in untrusted.advice
    assert asked(url, OTEL_EXPORTER_OTLP_CERTIFICATE=str(tmp_path / "ca.pem")).states() == ["ok"]


@pytest.mark.parametrize(
    ("symptom", "advised"),
    [
        (
            "http://localhost:4317/v1/traces cannot be reached: nobody listens",
            "4317 is the usual port of OTLP over gRPC",
        ),
        ("localhost:4318 (gRPC) does not accept them: error", "4318 is the usual port of OTLP over HTTP"),
        ("http://localhost:4318/v1/traces cannot be reached: nobody listens there", "start the receiver"),
        ("http://localhost:1 cannot be reached: what answers does not speak HTTP", "is it a receiver for gRPC?"),
        ("localhost:1 (gRPC) does not accept them: StatusCode.UNAUTHENTICATED", "has to contain the key"),
        ("localhost:1 (gRPC) does not accept them: SSL_ERROR_SSL", "begin the address with http://"),
    ],
)
def test_the_other_protocol_and_the_words_of_grpc_are_understood(symptom, advised):
    assert advised in advice_on(f"endpoint failed: {symptom}", {})


def test_a_judges_certificate_has_a_variable_of_its_own():
    assert "SSL_CERT_FILE" in advice_on("judge failed: gpt gave no answer: its certificate is not trusted", {})


def test_a_proxy_is_named_without_its_password_and_asked(asked, otlp_listener, monkeypatch):
    monkeypatch.delenv("NO_PROXY")
    findings = asked("http://collector.example:4318", HTTP_PROXY=f"http://user:hidden@127.0.0.1:{otlp_listener.port}")

    assert f"through the proxy http://127.0.0.1:{otlp_listener.port}" in findings[0].found
    assert "hidden" not in repr(findings)
    assert "http://collector.example:4318/v1/traces" in otlp_listener.requests
