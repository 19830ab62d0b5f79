"""What the record's spans show of the endpoint that they were sent to."""

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

PROTOBUF = "application/x-protobuf"
REJECTED = ExportTraceServiceResponse(partial_success={"rejected_spans": 1, "error_message": "quota exceeded"})


@pytest.fixture
def asked(examined):
    """What is found out about the endpoint by sending a record."""

    def ask(url=None, *, timeout=60.0, **variables):
        address = {} if url is None else {"OTEL_EXPORTER_OTLP_ENDPOINT": url}
        [finding] = examined(timeout=timeout, RAGSPAN_METRICS="completeness", **address, **variables).of("endpoint")
        return finding

    return ask


def test_the_record_is_really_sent_with_the_headers_of_the_environment(asked, otlp_listener):
    finding = asked(otlp_listener.url, OTEL_EXPORTER_OTLP_HEADERS="x-key=open%20sesame")

    assert (finding.state, finding.found[-8:]) == ("ok", "HTTP 200")
    assert otlp_listener.headers[0]["x-key"] == "open sesame"


@pytest.mark.parametrize(
    ("status", "advice"),
    [(401, "authorization="), (404, "/v1/traces is appended"), (500, "")],
)
def test_each_status_is_told_with_what_it_means(asked, otlp_listener, status, advice):
    otlp_listener.answers(status, b"not like this", Content_Type="text/plain")

    finding = asked(otlp_listener.url)

    assert (finding.state, finding.code) == ("failed", "endpoint_refuses")
    assert f"HTTP {status}: not like this" in finding.found
    assert advice in finding.advice


@pytest.mark.parametrize(
    ("status", "body", "headers", "words"),
    [
        (302, b"", {"Location": "https://login.example/?next=secret"}, "a redirect to https://login.example/,"),
        (200, b"<html></html>", {"Content_Type": "text/html; charset=utf-8"}, "web page"),
        (200, REJECTED.SerializeToString(), {"Content_Type": PROTOBUF}, "quota exceeded"),
    ],
)
def test_what_the_exporter_takes_for_success_and_is_none_fails(asked, otlp_listener, status, body, headers, words):
    otlp_listener.answers(status, body, **headers)

    finding = asked(otlp_listener.url)

    assert finding.state == "failed"
    assert words in finding.found
    assert "secret" not in finding.found


@pytest.mark.parametrize(
    ("url", "advice"),
    [
        ("http://127.0.0.1:{refused}", "start the receiver"),
        ("http://127.0.0.1:{silent}", "start the receiver"),
        ("https://127.0.0.1:{plain}", "http:// in place of https://"),
        ("localhost:4318", "write it as http://localhost:4318"),
    ],
)
def test_an_endpoint_that_cannot_be_reached_is_reported_with_what_may_be_wrong(
    asked, plain_port, silent_port, refused_port, url, advice
):
    most = 60.0 if "plain" in url else 2.0  # seconds; of what is not there and what is silent all are waited for

    finding = asked(url.format(silent=silent_port, refused=refused_port, plain=plain_port), timeout=most)

    assert (finding.state, finding.code) == ("failed", "endpoint_unreachable")
    assert advice in finding.advice
