"""The table of advice: a pattern for a finding and, indented, what to do about it.

The first pattern that is found in `<check> <state>: <text>` of a finding counts. Names in braces are facts of the finding.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

_TABLE = r"""
# Settings
RAGSPAN_ENABLED turns
    unset RAGSPAN_ENABLED, or set it to true
RAGSPAN_EMITTERS leaves 'otel' out
    set it to otel,{emitters}, unless scores should go nowhere else
RAGSPAN_SAMPLE_RATE is 0
    set it to the share of answers that you want scored, such as 0.1
knows no such variable$
    https://github.com/ragspan/ragspan/blob/main/docs/settings.md lists the variables
no integration with a framework
    pip install 'ragspan[langchain]' or 'ragspan[llama-index]'

# OpenTelemetry
OTEL_SDK_DISABLED is true: no spans
    unset it
(no exporter of traces is configured|OTEL_TRACES_EXPORTER is none)
    set OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318, or where your tool listens; the doctor does not see an exporter
    that your own code sets up
Header format invalid
    write name=value,name=value; a comma or a blank within a value is written as %2C or %20
leaves out those of an answer that do not fit
    set it to {least} or more (the default is 128)
record ids and explanations are cut
    set it to {least} at least; 1000 leaves explanations whole
the sampler keeps none
    set OTEL_TRACES_SAMPLER=parentbased_always_on or a ratio above 0
the sampler keeps
    answers of the other traces are not scored: raise OTEL_TRACES_SAMPLER_ARG for more

# The judge
^judge ok: overlap
    this judge compares words; for a language model set RAGSPAN_JUDGE, such as openai:gpt-4o-mini, and its key:
    `ragspan judges` lists both
^judge warning: .* failed an answer
    its scores will mislead: use a more capable model
^judge failed: .*certificate is not trusted
    name the file of your certificate authority in SSL_CERT_FILE
^judge failed: .*nobody listens
    start its server, or correct RAGSPAN_JUDGE_BASE_URL
^judge failed: .*AuthenticationError
    correct RAGSPAN_JUDGE_API_KEY, or where that is not set the provider's variable, which the message names
^judge failed: .*(timeout|APITimeoutError)
    the endpoint is slow or hangs: try a larger --timeout; RAGSPAN_METRIC_TIMEOUT is the application's limit
^judge failed: .* gave no answer: InvalidVerdict
    how replies are read: https://github.com/ragspan/ragspan/blob/main/docs/judges.md#how-replies-are-read
^judge failed: overlap gave no answer: timeout
    its first answer loads its lists of words, which takes longer on a busy machine: try a larger --timeout
^judge failed: .* gave no answer
    if the message does not say what to do: see the endpoint's log, or the provider's documentation of this error

# A tool's own server
^endpoint failed: \w+ at \S+ cannot be reached
    start it, or correct its address: https://github.com/ragspan/ragspan/blob/main/docs/tracing-tools.md

# The endpoint's reply
HTTP 3\d\d, a redirect
    set OTEL_EXPORTER_OTLP_ENDPOINT to the address that it points to, if that is the receiver's
(HTTP 40[45]|with a web page).* \(by OTEL_EXPORTER_OTLP_TRACES_ENDPOINT\)$
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is used unchanged: it usually has to end in /v1/traces
HTTP 40[45]|with a web page
    /v1/traces is appended to OTEL_EXPORTER_OTLP_ENDPOINT, so it must not contain that path itself; if the receiver has
    another path, set OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, which is used unchanged
HTTP 40[13]|UNAUTHENTICATED|PERMISSION_DENIED
    OTEL_EXPORTER_OTLP_HEADERS (OTEL_EXPORTER_OTLP_TRACES_HEADERS replaces it) has to contain the key as the tool's
    documentation says, such as authorization=Bearer%20…
HTTP 413
    a proxy or the receiver takes only small requests: set OTEL_BSP_MAX_EXPORT_BATCH_SIZE=64
HTTP 4(00|15)
    the receiver cannot read the request: set OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf, and unset
    OTEL_EXPORTER_OTLP_COMPRESSION
HTTP 422
    a header is missing or wrong, or the receiver cannot use what it was sent. If it is MLflow, it wants OTEL_EXPORTER_OTLP_HEADERS=x-mlflow-experiment-id=<number>
HTTP 501
    the server takes no spans at this address: check it. If it is MLflow, it needs a SQL store: --backend-store-uri sqlite:///mlflow.db
HTTP 5\d\d
    the receiver, or a proxy in front of it, has failed: see its log
HTTP \d+, but|HTTP 4\d\d
    see the receiver's log and limits
gRPC.*SSL
    begin the address with http:// if the receiver uses no TLS: without it, gRPC uses TLS

# No reply
is not an address that begins with
    write it as http://localhost:4318
its certificate is not trusted
    name the file of your certificate authority in OTEL_EXPORTER_OTLP_CERTIFICATE; REQUESTS_CA_BUNDLE and CURL_CA_BUNDLE
    replace it
no TLS connection can be made
    does the address have to begin with http:// in place of https://?
cannot be resolved
    check the address; a name of a container network is known only inside of it
:4317\b(?!.*gRPC).*(cannot be reached|does not accept)
    4317 is the usual port of OTLP over gRPC: use port 4318, or set OTEL_EXPORTER_OTLP_PROTOCOL=grpc and install
    opentelemetry-exporter-otlp-proto-grpc
:4318 \(gRPC\) (cannot be reached|does not accept)
    4318 is the usual port of OTLP over HTTP: set OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf
does not speak HTTP
    is it a receiver for gRPC? Its port for HTTP is another one, usually 4318
nobody listens there
    start the receiver, or correct the address; in a container, localhost is the container itself
cannot be reached|did not finish with|does not accept them
    check the address, the receiver's log, and firewalls in between

# The record
dropped: redaction_failed
    the function of RAGSPAN_REDACT has to accept a str and return one, for every text
budget_exhausted
    RAGSPAN_BUDGET_* allows less than one answer needs: raise it, or set RAGSPAN_BUDGET_FALLBACK
the record was not scored in time
    see the judge above; a larger --timeout waits longer
^record failed: (scored|without a score|the record was dropped)
    see the judge above
the endpoint did not accept
    see the endpoint above
^record failed: \w+ at \S+ did not accept
    check its credentials: https://github.com/ragspan/ragspan/blob/main/docs/tracing-tools.md; the span has to go there, too
ragspan logged: .*export\w* (metrics|logs)
    if the tool takes no metrics or logs, set OTEL_METRICS_EXPORTER=none or OTEL_LOGS_EXPORTER=none
ragspan logged
    your application will log the same
^record ok: the span .* arrived
    look for the attribute ragspan.record_id in your tool; Phoenix: attributes['ragspan']['record_id'] == '{record_id}';
    MLflow: the trace tr-{trace_id}; other tools:
    https://github.com/ragspan/ragspan/blob/main/docs/tracing-tools.md

# Elsewhere
^helper failed
    set RAGSPAN_EXPORT=application, or see that the helper can start; a larger --timeout waits longer
^sink ok: .*record_id
    a worker scores it: its span has this record id
^sink failed: no worker
    start one with `ragspan worker`, with the same RAGSPAN_SINK, the same RAGSPAN_NATS_STREAM, and
    OTEL_EXPORTER_OTLP_ENDPOINT: https://github.com/ragspan/ragspan/blob/main/docs/fleet.md. Until then records wait
^sink warning: no worker asks
    look at a worker's log, and at its page (`ragspan worker --health HOST:PORT`)
^sink warning: .*cannot be told: the broker does not answer
    the application's user may not look: permit $JS.API.CONSUMER.INFO.<stream>.<stream>-workers, or look at a worker's page
^sink failed: the broker did not accept
    check the address and the credentials in RAGSPAN_SINK, and whether the stream is full
did not end within
    something on the way hangs; a larger --timeout may show what
the check itself failed
    a defect of ragspan: please report it
"""


def advice_on(symptom: str, facts: Mapping[str, object]) -> str | None:
    """What to do about it; None if nothing is known, or nothing is to be done."""
    todo = next((todo for pattern, todo in ADVICE if re.search(pattern, symptom, re.DOTALL)), None)
    return todo and todo.format_map(facts)


def _rows() -> Iterator[tuple[str, str]]:
    for row in re.split(r"\n(?=\S)", re.sub(r"(?m)^#.*", "", _TABLE)):
        if row.strip():
            pattern, *todo = map(str.strip, row.strip().splitlines())
            yield pattern, " ".join(todo)


ADVICE = tuple(_rows())
