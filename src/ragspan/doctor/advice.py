"""The codes of findings, and what to do about each. Names in braces are facts of the finding."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

Code: TypeAlias = Literal[
    # Settings
    "wrong_setting",
    "variables",
    "versions",
    "turned_off",
    "no_otel_emitter",
    "sample_rate_zero",
    "without_effect",
    "no_integration",
    # OpenTelemetry
    "sdk_disabled",
    "invalid_headers",
    "few_attributes",
    "short_attributes",
    "sampler_keeps_none",
    "sampler_keeps_some",
    "no_exporter",
    # The judge
    "judge_answered",
    "judge_not_asked",
    "judge_partly_failed",
    "overlap_answered",
    "judge_fails_good_answer",
    "judge_untrusted",
    "judge_refused",
    "judge_wrong_key",
    "judge_timeout",
    "judge_unreadable",
    "overlap_timeout",
    "judge_failed",
    # A tool's own server
    "tool_answers",
    "tool_unreachable",
    # The endpoint's reply
    "no_endpoint",
    "endpoint_accepts",
    "endpoint_redirects",
    "traces_endpoint_wrong",
    "endpoint_wrong",
    "endpoint_wants_key",
    "endpoint_too_large",
    "endpoint_cannot_read",
    "endpoint_wants_header",
    "endpoint_takes_no_spans",
    "endpoint_failed",
    "endpoint_rejects",
    "grpc_no_tls",
    # No reply
    "endpoint_no_address",
    "endpoint_untrusted",
    "endpoint_no_tls",
    "endpoint_unresolved",
    "endpoint_is_for_grpc",
    "endpoint_is_for_http",
    "endpoint_no_http",
    "endpoint_refused",
    "endpoint_unreachable",
    # The record
    "scored",
    "printed",
    "span_lost",
    "span_not_sent",
    "tool_took_scores",
    "redaction_failed",
    "budget_exhausted",
    "not_scored_in_time",
    "not_scored",
    "span_not_accepted",
    "tool_refused_scores",
    "logged_export",
    "logged",
    "span_arrived",
    # Elsewhere
    "sink_accepts",
    "sink_refuses",
    "sink_silent",
    "worker_takes",
    "no_worker",
    "worker_unknown",
    "receiver_unreachable",
    "no_receiver",
    "receiver_full",
    "receiver_read",
    "receiver_cannot_read",
    "receiver_dropped",
    "scored_elsewhere",
    "not_examined",
    "did_not_end",
    "check_failed",
]
"""What a finding is about: for programs that read `--json`, and for tests. The words may change, a code does not."""

_ADVICE: Final[Mapping[Code, str]] = MappingProxyType(
    {
        # Settings
        "turned_off": "unset RAGSPAN_ENABLED, or set it to true",
        "no_otel_emitter": "set it to otel,{emitters}, unless scores should go nowhere else",
        "sample_rate_zero": "set it to the share of answers that you want scored, such as 0.1",
        "without_effect": "https://github.com/ragspan/ragspan/blob/main/docs/settings.md lists the variables",
        "no_integration": "pip install 'ragspan[langchain]' or 'ragspan[llama-index]'",
        # OpenTelemetry
        "sdk_disabled": "unset it",
        "invalid_headers": "write name=value,name=value; a comma or a blank within a value is written as %2C or %20",
        "few_attributes": "set it to {least} or more (the default is 128)",
        "short_attributes": "set it to {least} at least; 1000 leaves explanations whole",
        "sampler_keeps_none": "set OTEL_TRACES_SAMPLER=parentbased_always_on or a ratio above 0",
        "sampler_keeps_some": "answers of the other traces are not scored: raise OTEL_TRACES_SAMPLER_ARG for more",
        "no_exporter": (
            "set OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318, or where your tool listens; the doctor does not "
            "see an exporter that your own code sets up"
        ),
        # The judge
        "judge_partly_failed": (
            "if the message does not say what to do: see the endpoint's log, or the provider's documentation of this "
            "error"
        ),
        "overlap_answered": (
            "this judge compares words; for a language model set RAGSPAN_JUDGE, such as openai:gpt-4o-mini, and its "
            "key: `ragspan judges` lists both"
        ),
        "judge_fails_good_answer": "its scores will mislead: use a more capable model",
        "judge_untrusted": "name the file of your certificate authority in SSL_CERT_FILE",
        "judge_refused": "start its server, or correct RAGSPAN_JUDGE_BASE_URL",
        "judge_wrong_key": (
            "correct RAGSPAN_JUDGE_API_KEY, or where that is not set the provider's variable, which the message names"
        ),
        "judge_timeout": (
            "the endpoint is slow or hangs: try a larger --timeout; RAGSPAN_METRIC_TIMEOUT is the application's limit"
        ),
        "judge_unreadable": (
            "how replies are read: https://github.com/ragspan/ragspan/blob/main/docs/judges.md#how-replies-are-read"
        ),
        "overlap_timeout": (
            "its first answer loads its lists of words, which takes longer on a busy machine: try a larger --timeout"
        ),
        "judge_failed": (
            "if the message does not say what to do: see the endpoint's log, or the provider's documentation of this "
            "error"
        ),
        # A tool's own server
        "tool_unreachable": (
            "start it, or correct its address: https://github.com/ragspan/ragspan/blob/main/docs/tracing-tools.md"
        ),
        # The endpoint's reply
        "endpoint_redirects": (
            "set OTEL_EXPORTER_OTLP_ENDPOINT to the address that it points to, if that is the receiver's"
        ),
        "traces_endpoint_wrong": (
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is used unchanged: it usually has to end in /v1/traces"
        ),
        "endpoint_wrong": (
            "/v1/traces is appended to OTEL_EXPORTER_OTLP_ENDPOINT, so it must not contain that path itself; if the "
            "receiver has another path, set OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, which is used unchanged"
        ),
        "endpoint_wants_key": (
            "OTEL_EXPORTER_OTLP_HEADERS (OTEL_EXPORTER_OTLP_TRACES_HEADERS replaces it) has to contain the key as the "
            "tool's documentation says, such as authorization=Bearer%20…"
        ),
        "endpoint_too_large": (
            "a proxy or the receiver takes only small requests: set OTEL_BSP_MAX_EXPORT_BATCH_SIZE=64"
        ),
        "endpoint_cannot_read": (
            "the receiver cannot read the request: set OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf, and unset "
            "OTEL_EXPORTER_OTLP_COMPRESSION"
        ),
        "endpoint_wants_header": (
            "a header is missing or wrong, or the receiver cannot use what it was sent. If it is MLflow, it wants "
            "OTEL_EXPORTER_OTLP_HEADERS=x-mlflow-experiment-id=<number>"
        ),
        "endpoint_takes_no_spans": (
            "the server takes no spans at this address: check it. If it is MLflow, it needs a SQL store: --backend- "
            "store-uri sqlite:///mlflow.db"
        ),
        "endpoint_failed": "the receiver, or a proxy in front of it, has failed: see its log",
        "endpoint_rejects": "see the receiver's log and limits",
        "grpc_no_tls": "begin the address with http:// if the receiver uses no TLS: without it, gRPC uses TLS",
        # No reply
        "endpoint_no_address": "write it as http://localhost:4318",
        "endpoint_untrusted": (
            "name the file of your certificate authority in OTEL_EXPORTER_OTLP_CERTIFICATE; REQUESTS_CA_BUNDLE and "
            "CURL_CA_BUNDLE replace it"
        ),
        "endpoint_no_tls": "does the address have to begin with http:// in place of https://?",
        "endpoint_unresolved": "check the address; a name of a container network is known only inside of it",
        "endpoint_is_for_grpc": (
            "4317 is the usual port of OTLP over gRPC: use port 4318, or set OTEL_EXPORTER_OTLP_PROTOCOL=grpc and "
            "install opentelemetry-exporter-otlp-proto-grpc"
        ),
        "endpoint_is_for_http": (
            "4318 is the usual port of OTLP over HTTP: set OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf"
        ),
        "endpoint_no_http": "is it a receiver for gRPC? Its port for HTTP is another one, usually 4318",
        "endpoint_refused": (
            "start the receiver, or correct the address; in a container, localhost is the container itself"
        ),
        "endpoint_unreachable": "check the address, the receiver's log, and firewalls in between",
        # The record
        "redaction_failed": "the function of RAGSPAN_REDACT has to accept a str and return one, for every text",
        "budget_exhausted": (
            "RAGSPAN_BUDGET_* allows less than one answer needs: raise it, or set RAGSPAN_BUDGET_FALLBACK"
        ),
        "not_scored_in_time": "see the judge above; a larger --timeout waits longer",
        "not_scored": "see the judge above",
        "span_not_accepted": "see the endpoint above",
        "tool_refused_scores": (
            "check its credentials: https://github.com/ragspan/ragspan/blob/main/docs/tracing-tools.md; the span has "
            "to go there, too"
        ),
        "logged_export": (
            "if the tool takes no metrics or logs, set OTEL_METRICS_EXPORTER=none or OTEL_LOGS_EXPORTER=none"
        ),
        "logged": "your application will log the same",
        "span_arrived": (
            "look for the attribute ragspan.record_id in your tool; Phoenix: attributes['ragspan']['record_id'] == "
            "'{record_id}'; MLflow: the trace tr-{trace_id}; other tools: "
            "https://github.com/ragspan/ragspan/blob/main/docs/tracing-tools.md"
        ),
        # Elsewhere
        "sink_accepts": "a worker scores it: its span has this record id",
        "sink_refuses": "check the address and the credentials in RAGSPAN_SINK, and whether the stream is full",
        "no_worker": (
            "start one with `ragspan worker`, with the same RAGSPAN_SINK, the same RAGSPAN_NATS_STREAM, and "
            "OTEL_EXPORTER_OTLP_ENDPOINT: https://github.com/ragspan/ragspan/blob/main/docs/fleet.md. Until then "
            "records wait"
        ),
        "worker_unknown": (
            "look at a worker's log, and at its page (`ragspan worker --health HOST:PORT`). If the application's user "
            "may not look: permit $JS.API.CONSUMER.INFO.<stream>.<stream>-workers"
        ),
        "receiver_unreachable": "start it with `ragspan worker --otlp HOST:PORT`, or correct the address",
        "no_receiver": "name the address of `ragspan worker --otlp`, such as http://127.0.0.1:4318",
        "receiver_full": "senders come again; its log and its page say what is full",
        "receiver_cannot_read": (
            "what it reads, and what instrumentations hide: "
            "https://github.com/ragspan/ragspan/blob/main/docs/receiver.md"
        ),
        "did_not_end": "something on the way hangs; a larger --timeout may show what",
        "check_failed": "a defect of ragspan: please report it",
    }
)


def advice_on(code: Code, facts: Mapping[str, object]) -> str | None:
    """What to do about it; None if nothing is to be done."""
    todo = _ADVICE.get(code)
    return todo and todo.format_map(facts)
