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
    set it to otel,{emitters}
RAGSPAN_SAMPLE_RATE is 0
    set it to the share of answers that are to be scored, such as 0.1
knows no such variable$
    the variables are listed in docs/settings.md
no integration with a framework
    pip install 'ragspan[langchain]' or 'ragspan[llama-index]'
does not fit what is installed
    opentelemetry-instrument leaves it out: install the versions that it asks for
OTEL_PYTHON_DISABLED_INSTRUMENTATIONS
    opentelemetry-instrument leaves it out: take the name out of the list

# OpenTelemetry
OTEL_SDK_DISABLED is true: no spans
    unset it
traces: no exporter is configured
    set OTEL_TRACES_EXPORTER=otlp and OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318 (or where your tool
    listens); the doctor does not see an exporter that your own code sets up
Header format invalid
    write name=value,name=value; a comma or a blank within a value is written as %2C or %20
leaves out those of an answer that do not fit
    set it to {least} or more (the default is 128), or RAGSPAN_OPENINFERENCE=false
record ids and explanations are cut
    set it to {least} at least; 1000 leaves explanations whole
opentelemetry-instrument .*has other defaults
    if it starts your application, set {missing} as well
the sampler keeps
    answers of the other traces are not scored: raise OTEL_TRACES_SAMPLER_ARG for more, or set
    RAGSPAN_SCORE_UNSAMPLED=true to have their scores in metrics and logs

# The judge
^judge ok: overlap
    this judge compares words; for a language model set RAGSPAN_JUDGE=openai:<model> and OPENAI_API_KEY
^judge warning: .* found an answer ungrounded
    its scores will mislead: take a more capable model
^judge failed: .*InternalServerError
    the endpoint itself has failed: see its log or status page
^judge failed: .*BadRequestError
    the endpoint does not understand the request: does it speak OpenAI's chat protocol?
^judge failed: .*certificate is not trusted
    name the file of your certificate authority in SSL_CERT_FILE
^judge failed: .*no TLS connection
    does the address begin with https:// where it should be http://?
^judge failed: .*(APIConnectionError|cannot be resolved)
    check the address in RAGSPAN_JUDGE_BASE_URL (or OPENAI_BASE_URL), the network, and that its server is running
^judge failed: .*(timeout|APITimeoutError)
    the endpoint is slow or hangs: try a larger --timeout; RAGSPAN_METRIC_TIMEOUT is the application's limit
^judge failed: .* gave no answer
    the message says what to do, or else the provider's documentation of this error

# The endpoint's reply
HTTP 3\d\d, a redirect
    set OTEL_EXPORTER_OTLP_ENDPOINT to the address that it points to, if that is the receiver's
^endpoint \w+: (metrics|logs): .*HTTP 40[45]
    if the tool takes no {signal}, set OTEL_{signal_variable}_EXPORTER=none; else its path is another one
(HTTP 40[45]|with a web page).* \(by OTEL_EXPORTER_OTLP_\w+_ENDPOINT\)$
    OTEL_EXPORTER_OTLP_{signal_variable}_ENDPOINT is used as it stands: it mostly has to end in /v1/{signal}
HTTP 40[45]|with a web page
    /v1/{signal} is appended to OTEL_EXPORTER_OTLP_ENDPOINT, so it must not hold that path itself; where the
    receiver has another, set OTEL_EXPORTER_OTLP_{signal_variable}_ENDPOINT, which is used as it stands
has rejected what it was sent
    see the receiver's log and limits
HTTP 400
    the receiver cannot read the request: see its log, and unset OTEL_EXPORTER_OTLP_COMPRESSION
HTTP 40[13]|UNAUTHENTICATED|PERMISSION_DENIED
    {headers_variable} has to hold the key as the tool's documentation says, such as authorization=Bearer%20…; it
    now sends {headers}
HTTP 407
    a proxy in between wants a password: put the host into NO_PROXY, or the password into the URL
HTTP 413
    a proxy or the receiver takes only small requests: set OTEL_BSP_MAX_EXPORT_BATCH_SIZE=64
HTTP 415
    it takes another encoding (set OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf and unset
    OTEL_EXPORTER_OTLP_COMPRESSION), or no {signal} at all
HTTP 422
    a header is missing or wrong: MLflow wants OTEL_EXPORTER_OTLP_HEADERS=x-mlflow-experiment-id=<number>
HTTP 429
    the receiver's rate limit is reached: sample fewer traces, or raise it
HTTP 501
    it cannot take spans as it is set up: MLflow needs a SQL store, --backend-store-uri sqlite:///mlflow.db
HTTP 50[24]
    a proxy answers, but the receiver behind it does not
HTTP 503
    the receiver is not ready or overloaded
HTTP 5\d\d
    the receiver itself has failed: see its log
HTTP 4\d\d
    see the receiver's log
UNIMPLEMENTED
    what listens there speaks gRPC, but is no receiver of {signal}
RESOURCE_EXHAUSTED
    the receiver is overloaded, or takes only smaller requests
gRPC.*SSL
    begin the address with http:// where no TLS is spoken: without it, gRPC takes TLS for granted

# No reply
is no address that begins with
    write it as http://localhost:4318
its certificate is not trusted \(\w+ overrules
    add your certificate authority to the file that the variable names
its certificate is not trusted
    name the file of your certificate authority in OTEL_EXPORTER_OTLP_CERTIFICATE
no TLS connection can be made
    does the address have to begin with http:// in place of https://?
cannot be resolved
    check the address; a name of a container network is known only inside of it
:4317\b(?!.*gRPC).*(cannot be reached|does not take)
    4317 is the usual port of OTLP over gRPC: take port 4318, or set OTEL_EXPORTER_OTLP_PROTOCOL=grpc and install
    opentelemetry-exporter-otlp-proto-grpc
:4318 \(gRPC\) (cannot be reached|does not take)
    4318 is the usual port of OTLP over HTTP: set OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf
does not speak HTTP
    is it a receiver for gRPC? Its port for HTTP is another one, mostly 4318
(localhost|127\.0\.0\.1|::1).* nobody listens
    start the receiver, or set the address where it listens; in a container, that is the container itself
nobody listens there
    start the receiver, or set the address where it listens
cannot be reached|was not done with
    check the address, the receiver's log, and firewalls in between

# The record
dropped: redaction_failed
    the function of RAGSPAN_REDACT takes a str and returns one, for every text
budget_exhausted
    RAGSPAN_BUDGET_* allows less than one answer takes: raise it, or set RAGSPAN_BUDGET_FALLBACK
the record was not scored in the time
    see the judge above; a larger --timeout waits longer
^record failed: (scored|the record was dropped)
    see the judge above, and RAGSPAN_METRIC_TIMEOUT
the sampler has kept none
    set OTEL_TRACES_SAMPLER=parentbased_always_on or a ratio above 0
has not taken the record
    see the endpoint above
^record failed: \w+ at \S+ has not taken
    see docs/tracing-tools.md for its address and credentials; the span has to go there, too
logged on the way
    your application will log the same

# Elsewhere
^helper failed
    set RAGSPAN_EXPORT=application, or see that the helper can start; a larger --timeout waits longer
^sink ok
    a worker scores it: its span has this record id
^sink failed: the broker has not taken
    is it at the address of RAGSPAN_SINK, does it know these credentials, and has its stream room?
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
