"""What the record's spans show of the endpoint that they were sent to."""

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from ragspan.doctor.record import Exchange, endpoint_finding

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
    ("status", "kind", "said"),
    [
        (401, "text/plain", ": not like this"),
        (404, "text/plain", ": not like this"),
        (422, "text/plain", ": not like this"),
        (500, "text/plain", ": not like this"),
        (400, "text/html", ""),
        (413, PROTOBUF, ""),
    ],
)
def test_each_status_is_told_with_what_it_means(asked, otlp_listener, status, kind, said):
    otlp_listener.answers(status, b"not like this", Content_Type=kind)

    finding = asked(otlp_listener.url)

    assert (finding.state, finding.code) == ("failed", "endpoint_refuses")
    assert finding.found.endswith(f"HTTP {status}{said}")


def test_a_receiver_that_answers_otherwise_has_taken_the_spans(asked, otlp_listener):
    otlp_listener.answers(200, b"all good", Content_Type="text/plain")

    assert asked(otlp_listener.url).code == "endpoint_accepts"


@pytest.mark.parametrize(
    ("successes", "complaints", "said"),
    [
        ([True, True], [], "accepts them, as the exporter says"),
        ([True, False], ["first", "UNAUTHENTICATED"], "does not accept them: UNAUTHENTICATED"),
        ([], [], "does not accept them: 'the exporter does not say why'"),
    ],
)
def test_of_grpc_the_exporters_word_is_told(successes, complaints, said):
    found = endpoint_finding(Exchange(url="http://h:4317", is_grpc=True, successes=successes), complaints)

    assert (found.found, found.state) == (
        f"http://h:4317 (gRPC) {said}",
        "ok" if successes == [True, True] else "failed",
    )
    assert ("has to contain the key" in str(found.advice), "4317 for grpc" in str(found.advice)) == (
        bool(complaints),
        not successes,
    )


def test_an_address_that_is_used_unchanged_is_said_to_be(asked, otlp_listener):
    otlp_listener.answers(404, b"", Content_Type="text/plain")

    finding = asked(OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=f"{otlp_listener.url}/v1")

    assert finding.advice.startswith("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is used unchanged")


@pytest.mark.parametrize(
    ("status", "body", "headers", "words"),
    [
        (302, b"", {"Location": "https://login.example/?next=secret"}, "a redirect to https://login.example/,"),
        (200, b"<html></html>", {"Content_Type": "text/html; charset=utf-8"}, "web page"),
        (200, REJECTED.SerializeToString(), {"Content_Type": PROTOBUF}, "quota exceeded"),
        (399, b"", {"Content_Type": PROTOBUF}, "a redirect to elsewhere,"),
    ],
)
def test_what_the_exporter_takes_for_success_and_is_none_fails(asked, otlp_listener, status, body, headers, words):
    otlp_listener.answers(status, body, **headers)

    finding = asked(otlp_listener.url)

    assert finding.state == "failed"
    assert words in finding.found
    assert "secret" not in finding.found


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:{refused}", "http://127.0.0.1:{silent}", "https://127.0.0.1:{plain}", "localhost:4318"],
)
def test_an_endpoint_that_cannot_be_reached_is_reported_with_what_may_be_wrong(
    asked, plain_port, silent_port, refused_port, url
):
    most = 60.0 if "plain" in url else 2.0  # seconds; of what is not there and what is silent all are waited for

    finding = asked(url.format(silent=silent_port, refused=refused_port, plain=plain_port), timeout=most)

    assert (finding.state, finding.code) == ("failed", "endpoint_unreachable")
