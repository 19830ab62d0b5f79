import contextlib
import socket
import ssl
import threading

import pytest
import trustme
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from ragspan import Settings
from ragspan.doctor.backends import LANGFUSE, MLFLOW, PHOENIX, RECEIVER
from ragspan.doctor.causes import advice_about, place_of
from ragspan.doctor.endpoint import endpoint_findings
from ragspan.doctor.replies import advice_on_words
from ragspan.doctor.watching import NAME, watch_record

PROTOBUF = "application/x-protobuf"


def examined(seconds=10.0):
    """What is found out about the endpoints by sending a record."""
    settings = Settings(judging="thread", metrics=("completeness",))
    return endpoint_findings(watch_record(settings, seconds), seconds)


def states(endpoints):
    return [finding.state for finding in endpoints.findings]


def test_the_record_is_really_sent(otlp_listener, set_variables):
    set_variables(OTEL_EXPORTER_OTLP_ENDPOINT=otlp_listener.url)

    endpoints = examined()

    assert states(endpoints) == ["ok"]
    assert endpoints.takes_spans
    assert endpoints.findings[0].facts["status"] == 200
    assert NAME in [span.name for span in otlp_listener.spans]


def test_the_headers_of_the_environment_go_with_it(otlp_listener, set_variables):
    set_variables(OTEL_EXPORTER_OTLP_ENDPOINT=otlp_listener.url, OTEL_EXPORTER_OTLP_HEADERS="x-key=open%20sesame")

    examined()

    assert otlp_listener.headers[0]["x-key"] == "open sesame"


def test_without_an_otlp_exporter_there_is_nothing_to_reach(set_variables):
    set_variables(OTEL_TRACES_EXPORTER="console")

    endpoints = examined()

    assert states(endpoints) == ["skipped"]
    assert endpoints.takes_spans


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
def test_each_status_is_told_with_what_it_means(otlp_listener, set_variables, status, advice):
    set_variables(OTEL_EXPORTER_OTLP_ENDPOINT=otlp_listener.url)
    otlp_listener.answers(status, b"not like this", Content_Type="text/plain")

    endpoints = examined()

    assert states(endpoints)[0] == "failed"
    assert not endpoints.takes_spans
    assert f"HTTP {status}: not like this" in endpoints.findings[0].found
    assert advice in endpoints.findings[0].advice


def test_an_endpoint_of_its_own_is_said_to_be_used_as_it_stands(otlp_listener, set_variables):
    set_variables(OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=otlp_listener.url)
    otlp_listener.answers(404)

    [finding] = examined().findings

    assert "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is used as it stands" in finding.advice
    assert set(otlp_listener.requests) == {"/"}


@pytest.mark.parametrize(
    ("status", "headers", "words"),
    [
        (302, {"Location": "https://login.example/?next=secret"}, "a redirect to https://login.example/"),
        (200, {"Content_Type": "text/html; charset=utf-8"}, "what answers is no OTLP receiver"),
    ],
)
def test_what_the_exporter_takes_for_success_and_is_none_fails(otlp_listener, set_variables, status, headers, words):
    set_variables(OTEL_EXPORTER_OTLP_ENDPOINT=otlp_listener.url)
    otlp_listener.answers(status, b"<html></html>", **headers)

    endpoints = examined()

    assert not endpoints.takes_spans
    assert words in endpoints.findings[0].found
    assert "secret" not in endpoints.findings[0].found


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (
            PROTOBUF,
            ExportTraceServiceResponse(
                partial_success={"rejected_spans": 1, "error_message": "quota exceeded"}
            ).SerializeToString(),
        ),
        ("application/json", b'{"partialSuccess": {"rejectedSpans": "1", "errorMessage": "quota exceeded"}}'),
    ],
)
def test_a_receiver_that_throws_spans_away_fails_although_it_says_200(otlp_listener, set_variables, kind, body):
    set_variables(OTEL_EXPORTER_OTLP_ENDPOINT=otlp_listener.url)
    otlp_listener.answers(200, body, Content_Type=kind)

    endpoints = examined()

    assert not endpoints.takes_spans
    assert "has rejected what it was sent: quota exceeded" in endpoints.findings[0].found


@pytest.mark.parametrize("body", [b"", b"{}", b'{"partialSuccess": {}}', b"OK", b"[1]"])
def test_whatever_else_a_receiver_says_with_200_is_success(otlp_listener, set_variables, body):
    set_variables(OTEL_EXPORTER_OTLP_ENDPOINT=otlp_listener.url)
    otlp_listener.answers(200, body, Content_Type="application/json")

    assert examined().takes_spans


def test_a_refused_connection_is_told_as_one(refused_port, set_variables):
    set_variables(OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{refused_port}")

    endpoints = examined()

    assert states(endpoints) == ["failed"]
    assert not endpoints.takes_spans
    assert f"127.0.0.1:{refused_port} cannot be reached: nobody listens there" in endpoints.findings[0].found
    assert "in a container, 127.0.0.1 is the container" in endpoints.findings[0].advice


def test_an_endpoint_that_several_signals_share_is_missed_once(refused_port, set_variables):
    set_variables(
        OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{refused_port}",
        OTEL_TRACES_EXPORTER="otlp",
        OTEL_METRICS_EXPORTER="otlp",
        OTEL_LOGS_EXPORTER="otlp",
    )

    assert states(examined()) == ["failed"]


def test_an_endpoint_that_says_nothing_is_given_up_in_time(silent_port, set_variables):
    set_variables(OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{silent_port}")

    endpoints = examined(seconds=2.0)

    assert not endpoints.takes_spans
    assert "it does not answer in time" in endpoints.findings[0].found


def test_an_endpoint_that_hangs_up_is_told_as_one(otlp_listener, set_variables):
    set_variables(OTEL_EXPORTER_OTLP_ENDPOINT=otlp_listener.url)

    def hang_up(_path):
        raise ConnectionAbortedError

    otlp_listener.answer = hang_up
    endpoints = examined(seconds=1.0)

    assert not endpoints.takes_spans
    assert "closes the connection" in endpoints.findings[0].found


def test_a_receiver_for_grpc_is_suspected_where_no_http_is_spoken(set_variables):
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
        set_variables(OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{listening.getsockname()[1]}")
        [finding] = examined(seconds=2.0).findings
        listening.shutdown(socket.SHUT_RDWR)

    assert "does not speak HTTP" in finding.found
    assert "gRPC" in finding.advice


@pytest.mark.parametrize(
    ("url", "is_grpc", "advised"),
    [
        ("http://localhost:4317", False, "4317 is the usual port of OTLP over gRPC"),
        ("localhost:4318", True, "4318 is the usual port of OTLP over HTTP"),
        ("http://localhost:4318", False, "start the receiver"),
        ("http://localhost:4317", True, "start the receiver"),
    ],
)
def test_the_usual_port_of_the_other_protocol_is_pointed_out(url, is_grpc, advised):
    assert advised in advice_about("refused", place_of(url, is_grpc=is_grpc))


@pytest.mark.parametrize(
    ("words", "advised"),
    [
        ("error code: StatusCode.UNAUTHENTICATED", "has to hold the key"),
        ("StatusCode.UNAVAILABLE: SSL_ERROR_SSL", "begin the address with http://"),
        ("StatusCode.UNIMPLEMENTED", "no receiver of this signal"),
    ],
)
def test_the_words_of_grpc_are_understood(words, advised):
    assert advised in advice_on_words(words, "traces")


def test_tls_where_none_is_spoken_is_told_as_one(otlp_listener, set_variables):
    set_variables(OTEL_EXPORTER_OTLP_ENDPOINT=otlp_listener.url.replace("http:", "https:"))

    endpoints = examined(seconds=2.0)

    assert not endpoints.takes_spans
    assert "http:// in place of https://" in endpoints.findings[0].advice


def test_a_certificate_is_trusted_only_where_its_authority_is_named(make_otlp_listener, set_variables, tmp_path):
    authority = trustme.CA()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    set_variables(OTEL_EXPORTER_OTLP_ENDPOINT=make_otlp_listener(tls=tls).url)

    untrusted = examined(seconds=2.0)
    set_variables(OTEL_EXPORTER_OTLP_CERTIFICATE=str(tmp_path / "ca.pem"))
    trusted = examined()

    assert "its certificate is not trusted" in untrusted.findings[0].found
    assert "OTEL_EXPORTER_OTLP_CERTIFICATE" in untrusted.findings[0].advice
    assert trusted.takes_spans


def test_a_variable_that_overrules_the_named_authority_is_pointed_out(make_otlp_listener, set_variables, tmp_path):
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority, other = trustme.CA(), trustme.CA()
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    other.cert_pem.write_to_path(tmp_path / "other.pem")
    set_variables(
        OTEL_EXPORTER_OTLP_ENDPOINT=make_otlp_listener(tls=tls).url,
        OTEL_EXPORTER_OTLP_CERTIFICATE=str(tmp_path / "ca.pem"),
        REQUESTS_CA_BUNDLE=str(tmp_path / "other.pem"),
    )

    [finding] = examined(seconds=2.0).findings

    assert "REQUESTS_CA_BUNDLE names: it overrules" in finding.advice


@pytest.mark.parametrize("url", ["localhost:4318", "http://", "http://localhost:port", "tcp://localhost:4318"])
def test_what_is_no_address_is_a_misuse(set_variables, url):
    set_variables(OTEL_EXPORTER_OTLP_ENDPOINT=url)

    endpoints = examined()

    assert not endpoints.takes_spans
    assert endpoints.findings[0].is_misuse
    assert "http://localhost:4318" in endpoints.findings[0].advice


def test_a_proxy_is_named_without_its_password_and_asked(otlp_listener, set_variables, monkeypatch):
    monkeypatch.delenv("NO_PROXY")
    set_variables(
        HTTP_PROXY=f"http://user:hidden@127.0.0.1:{otlp_listener.port}",
        OTEL_EXPORTER_OTLP_ENDPOINT="http://collector.example:4318",
    )

    endpoints = examined()

    assert f"go through the proxy http://127.0.0.1:{otlp_listener.port}" in endpoints.findings[0].found
    assert "hidden" not in repr(endpoints.findings)
    assert "http://collector.example:4318/v1/traces" in otlp_listener.requests


def test_metrics_and_logs_that_a_tool_does_not_take_are_a_warning_with_what_to_switch_off(otlp_listener, set_variables):
    set_variables(
        OTEL_EXPORTER_OTLP_ENDPOINT=otlp_listener.url, OTEL_METRICS_EXPORTER="otlp", OTEL_LOGS_EXPORTER="otlp"
    )
    otlp_listener.answer = lambda path: (200 if "traces" in path else 405, {"x-phoenix-server-version": "20.26.1"}, b"")

    endpoints = examined()

    assert endpoints.takes_spans
    assert endpoints.backend is PHOENIX
    assert states(endpoints) == ["ok", "ok", "warning", "warning", "warning"]
    assert "OTEL_METRICS_EXPORTER=none OTEL_LOGS_EXPORTER=none" in endpoints.findings[2].advice
    assert "Attributes tab" in endpoints.findings[1].found


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
def test_who_answers_is_told_where_it_can_be(otlp_listener, set_variables, pages, path, backend):
    set_variables(OTEL_EXPORTER_OTLP_ENDPOINT=otlp_listener.url + path)
    otlp_listener.pages = pages

    assert examined().backend is backend


def test_mlflow_is_known_by_the_header_that_it_misses(otlp_listener, set_variables):
    set_variables(OTEL_EXPORTER_OTLP_ENDPOINT=otlp_listener.url)
    otlp_listener.answers(422, b'{"detail": "X-MLflow-Experiment-Id is required"}', Content_Type="application/json")

    assert examined().backend is MLFLOW
