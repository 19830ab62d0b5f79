"""The default engine and sink of handlers, and what settings make."""

from __future__ import annotations

from importlib.metadata import EntryPoint, EntryPoints

import pytest

import ragspan
from ragspan import ConfigurationError, RagRecord, defaults, installed
from ragspan.config import Settings
from ragspan.testing import RecordingSink

pytestmark = pytest.mark.usefixtures("no_engine_yet")


def test_the_default_engine_is_made_once_and_scores_with_the_embedded_judge():
    engine = ragspan.default_engine()
    engine.submit(RagRecord(question="q", contexts=["Beta settles at night."], response="Beta settles at night."))

    assert engine.flush(timeout=60)
    assert [defaults.set_default_engine(engine) for _ in range(2)] == [engine] * 2
    assert ragspan.default_engine() is engine
    told = "<ScoringEngine 'ragspan': context_adherence, faithfulness to OTelEmitter>"
    assert (engine.stats().finished, repr(engine)) == (1, told)


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"QUEUE_SIZE": "0"}, "RAGSPAN_QUEUE_SIZE is '0', but should be a whole number, at least 1"),
        (
            {"EMITTERS": "otel,fenix"},
            r"there is no emitter 'fenix' here \(by emitters or RAGSPAN_EMITTERS\); did you mean 'phoenix'\?; there are: console, .*otel, phoenix$",
        ),
        ({"METRICS": "faithfulness,answer_relevance"}, "answer_relevance needs an LLM judge"),
        (
            {"JUDGE": "openai:local", "JUDGE_BASE_URL": "http://127.0.0.1:1/v1", "BUDGET_USD_PER_DAY": "5"},
            r"what the judge 'openai:local' costs is not known.*RAGSPAN_JUDGE_OPTIONS",
        ),
        (
            {"JUDGE": "openai:any", "JUDGE_API_KEY": "k", "JUDGE_OPTIONS": '{"prize": [1, 1]}'},
            "'openai:any' cannot be made: .*'prize'; its options come from RAGSPAN_JUDGE_OPTIONS",
        ),
    ],
)
def test_an_engine_that_cannot_be_made_is_an_error_that_says_what_to_set(monkeypatch, variables, message):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(f"RAGSPAN_{name}", value)

    with pytest.raises(ConfigurationError, match=message):
        ragspan.default_engine()


def test_turned_off_it_takes_nothing_and_needs_no_judge_and_no_emitter(monkeypatch):
    monkeypatch.setenv("RAGSPAN_ENABLED", "false")
    monkeypatch.setenv("RAGSPAN_JUDGE", "openai:gpt-4o-mini")
    monkeypatch.setenv("RAGSPAN_EMITTERS", "not-installed")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    engine = ragspan.default_engine()
    engine.submit(RagRecord(question="q", contexts=["c"], response="r"))

    assert engine.flush(timeout=60)
    assert dict(engine.stats().dropped) == {"not_running": 1}
    assert repr(engine).endswith(" to no emitter>")


@pytest.mark.parametrize(
    ("emitters", "made"),
    [
        ("phoenix", ["OTelEmitter", "PhoenixEmitter"]),
        ("console,phoenix", ["OTelEmitter", "ConsoleEmitter", "PhoenixEmitter"]),
        ("phoenix,otel", ["PhoenixEmitter", "OTelEmitter"]),
        ("langsmith", ["LangSmithEmitter"]),
    ],
)
def test_a_writer_that_needs_a_span_brings_otel_along(monkeypatch, emitters, made):
    monkeypatch.setenv("RAGSPAN_EMITTERS", emitters)
    monkeypatch.setenv("LANGSMITH_TRACING", "true")
    monkeypatch.setenv("LANGSMITH_API_KEY", "key")

    assert [type(emitter).__name__ for emitter in ragspan.default_engine().emitters] == made


# Where handlers send captures when they are given no sink


class FarSink(RecordingSink):
    """Records where it was told to send."""

    def __init__(self, settings):
        super().__init__()
        self.address = settings.sink


@pytest.fixture
def registered(monkeypatch):
    """A sink for addresses that begin with `far`, and one whose package lacks something; nothing is left of them after."""
    entries = [
        EntryPoint("far", f"{__name__}:FarSink", "ragspan_sink"),
        EntryPoint("lost", "nowhere:Sink", "ragspan_sink"),
    ]
    monkeypatch.setattr(installed, "entry_points", EntryPoints(entries).select)


def test_a_sink_is_made_once_for_its_address_and_gets_the_captures(registered, monkeypatch):
    monkeypatch.setenv("RAGSPAN_SINK", "far://away")

    with ragspan.capture(question="q") as answer:
        answer.response = "r"

    sink = defaults.default_sink()
    assert sink.address == "far://away"
    assert defaults.default_sink() is sink
    (record,) = sink.records()
    assert (record.question, record.response) == ("q", "r")


@pytest.mark.parametrize("variables", [{"SINK": ""}, {"SINK": "far://away", "ENABLED": "false"}])
def test_without_an_address_and_when_turned_off_it_is_the_engine(registered, monkeypatch, variables):
    for name, value in variables.items():
        monkeypatch.setenv(f"RAGSPAN_{name}", value)

    sink = defaults.default_sink()

    assert sink is ragspan.default_engine()
    sink.shutdown()


OF_THE_KIND = (
    "RAGSPAN_SINK has an address of the kind '{}', and no installed package takes records there{}; for nats:// and tls://: "
    "pip install 'ragspan[nats]'"
)


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("NEAR://user:secret@x", OF_THE_KIND.format("near", "")),
        ("fare://user:secret@x", OF_THE_KIND.format("fare", "; did you mean 'far'?")),
        (
            "lost://user:secret@x",
            f"{OF_THE_KIND.format('lost', '; did you mean {!r}?'.format('lost'))} (nowhere:Sink cannot be imported: No module named 'nowhere')",
        ),
        ("secret@x:4222", "RAGSPAN_SINK is not an address such as nats://host:4222"),
    ],
)
def test_an_address_that_nothing_can_send_to_is_an_error_without_its_secrets(registered, address, said):
    with pytest.raises(ConfigurationError) as told:
        defaults.sink_from(Settings(sink=address))

    assert str(told.value) == said


def test_what_takes_no_records_is_no_sink():
    with pytest.raises(ConfigurationError) as told:
        defaults.sink_or_default(5)

    assert str(told.value) == "sink is 5, but should be a ScoringEngine, another object with a method submit, or None"


@pytest.mark.parametrize(
    ("settings", "exporter", "message"),
    [
        ({"enabled": False, "emitters": ("console",)}, None, "a worker would have nothing to do"),
        ({"emitters": ("otel",)}, None, "no exporter of spans is configured"),
        ({"emitters": ("otel",), "spans": "scores"}, None, "no exporter of spans is configured"),
        ({"emitters": ("otel", "langfuse")}, None, "no exporter of spans is configured"),
        ({"emitters": ("otel", "langfuse"), "spans": "scores"}, None, None),
        ({"emitters": ("console",)}, None, None),
        ({"emitters": ("otel",)}, "http://127.0.0.1:9", None),
    ],
)
def test_a_worker_needs_somewhere_to_send_its_scores(monkeypatch, settings, exporter, message):
    if exporter:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", exporter)
    if message is None:
        defaults.check_worker(Settings(**settings))
    else:
        with pytest.raises(ConfigurationError, match=message):
            defaults.check_worker(Settings(**settings))
