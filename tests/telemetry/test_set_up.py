"""What `configure()` makes, in a process where nobody has set up OpenTelemetry, and in one where somebody has."""

from __future__ import annotations

import os

import pytest
from langchain_core.runnables import RunnableLambda
from opentelemetry import metrics, trace

import ragspan
from ragspan.tools.phoenix import PhoenixEmitter

NOWHERE = "http://127.0.0.1:9"


@pytest.fixture
def set_up(no_global_providers, no_engine_yet, monkeypatch):
    """Calls `configure`, with these variables alone; all is as before at the end."""
    for name in [name for name in os.environ if name.startswith(("OTEL_", "RAGSPAN_", "PHOENIX_"))]:
        monkeypatch.delenv(name)
    made = []

    def configure(*, variables=None, **given):
        for name, value in (variables or {}).items():
            monkeypatch.setenv(name, value)
        made.append(ragspan.configure(metrics=["faithfulness"], **given))
        return made[-1]

    yield configure
    for one in made:
        one.shutdown(0)
    for provider in (trace.get_tracer_provider(), metrics.get_meter_provider()):
        getattr(provider, "shutdown", bool)()


def ask():
    with ragspan.capture(question="When?") as answer:
        answer.contexts = ["At night."]
        answer.response = "At night."


@pytest.mark.parametrize(
    ("given", "variables", "emitters", "where"),
    [
        ({}, {}, "Console", "the console"),
        ({}, {"OTEL_METRICS_EXPORTER": "console"}, "OTel Console", "the console"),
        ({}, {"OTEL_SDK_DISABLED": "True"}, "OTel", None),
        ({}, {"OTEL_TRACES_EXPORTER": "none"}, "OTel", None),
        ({}, {"OTEL_TRACES_EXPORTER": "console"}, "OTel", "the exporter console"),
        ({}, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://user:hush@127.0.0.1:9"}, "OTel", NOWHERE),
        ({}, {"OTEL_EXPORTER_OTLP_ENDPOINT": NOWHERE, "RAGSPAN_EMITTERS": "console"}, "Console", "the console"),
        ({"phoenix": NOWHERE}, {}, "OTel Phoenix", f"phoenix at {NOWHERE}"),
        ({"mlflow": NOWHERE, "emitters": ["console"]}, {}, "OTel Console MLflow", f"the console, mlflow at {NOWHERE}"),
        ({"emitters": [PhoenixEmitter(base_url=NOWHERE)]}, {}, "OTel Phoenix", f"phoenix at {NOWHERE}"),
        ({"on_alert": print}, {}, "Console Alert", "the console"),
        ({}, {"RAGSPAN_ALERT_WEBHOOK": NOWHERE}, "Console Alert", "the console"),
    ],
)
def test_scores_go_where_somebody_gets_them(set_up, given, variables, emitters, where):
    configured = set_up(variables=variables, **given)

    waits = {type(one).__name__.removesuffix("Emitter"): one.score_wait for one in configured.engine.emitters}
    assert [*waits.items()] == [(name, 10.0 * (name in {"OTel", "Console"})) for name in emitters.split()]
    assert configured.line == (
        "answers of langchain, llama_index are scored by overlap (faithfulness); "
        f"scores go {f'to {where}' if where else 'nowhere'}"
    )


@pytest.mark.parametrize(
    ("given", "variable", "here", "there"),
    [
        ({}, "OTEL_EXPORTER_OTLP_ENDPOINT", 0, 1),
        ({}, "OTEL_EXPORTER_OTLP_ENDPOINT", 1, 0),
        ({"phoenix": True}, "ANY", 0, 1),
        ({"phoenix": True}, "ANY", 1, 1),
        ({"emitters": ["phoenix"]}, "PHOENIX_ENDPOINT", 0, 1),
    ],
    ids=str,
)
def test_an_answers_span_goes_there_once_however_often_it_is_set_up_and_where_the_application_sends_its_own(
    set_up, telemetry, otlp_listener, given, variable, here, there
):
    otlp_listener.answers(200, b'{"data": []}', Content_Type="application/json")
    if here:
        trace.set_tracer_provider(telemetry.tracer_provider)
    if "phoenix" in given:
        given = {"phoenix": otlp_listener.url}
    first, second = (set_up(variables={variable: otlp_listener.url}, **given) for _ in range(2))
    ask()

    assert second.flush(60)
    assert trace.get_tracer_provider().force_flush()
    assert [span.name for span in telemetry.spans] == ["invoke_workflow answer"] * here
    assert [span.name for span in otlp_listener.spans] == ["invoke_workflow answer"] * there
    assert (first.engine.stats().submitted, second.engine.stats().finished) == (0, 1)


def test_the_last_set_up_is_in_use_until_it_is_shut_down(set_up):
    first, second = set_up(), set_up()

    first.shutdown()
    assert ragspan.default_engine() is second.engine
    RunnableLambda(str).invoke("When?")
    second.shutdown()
    RunnableLambda(str).invoke("When?")
    assert [one.engine.stats().submitted for one in (first, second)] == [0, 1]
    assert ragspan.default_engine() is not second.engine
