"""One call sets everything up: programs of their own, for what is set up lasts as long as a process."""

import json
import logging
import os
import sys
from pathlib import Path

import pytest
from programs import run_python

from ragspan import ConfigurationError, configure
from ragspan.process import set_up_or_off
from ragspan.testing import RecordingSink

APPLICATION = Path(__file__).parent / "applications" / "configured.py"


def run(given, words=(), program=(APPLICATION,), **variables):
    """What a program prints that calls `configure` with these arguments, and asks once."""
    others = {name: value for name, value in os.environ.items() if not name.startswith(("RAGSPAN_", "OTEL_"))}
    environment = others | {"NO_PROXY": "*"} | variables
    done = run_python("-W", "error", *program, json.dumps(given), *words, environment=environment)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


@pytest.mark.slow
def test_what_redact_takes_out_is_on_no_span(otlp_listener):
    run(
        {"metrics": ["faithfulness"], "capture_content": True},
        RAGSPAN_REDACT="privacy:mask",
        OTEL_EXPORTER_OTLP_ENDPOINT=otlp_listener.url,
    )

    assert len(otlp_listener.spans) >= 3
    assert "[bank] settles card payments after midnight." in repr(otlp_listener.spans)
    assert "Beta" not in repr(otlp_listener.spans)


@pytest.mark.slow
def test_a_program_that_knows_nothing_of_ragspan_is_run_with_it(otlp_listener):
    program = ("-m", "ragspan.cli", "run", "-q", APPLICATION.parent / "plain.py")

    shown = run([], words=["--loud"], program=program, OTEL_EXPORTER_OTLP_ENDPOINT=otlp_listener.url)

    assert shown.splitlines() == ["__main__ ['plain.py', '[]', '--loud']"]
    assert "invoke_workflow payments" in [span.name for span in otlp_listener.spans]


@pytest.mark.slow
def test_what_a_program_raises_is_shown_as_python_shows_it(tmp_path):
    program = tmp_path / "app.py"
    program.write_text("def answer():\n    raise KeyError('when')\n\nanswer()\n")

    plain = run_python(program)
    ours = run_python("-m", "ragspan.cli", "run", "-q", program)

    assert (ours.returncode, ours.stderr) == (plain.returncode, plain.stderr)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"judge": "openai"}, "'openai' names no model: the judge should be like 'openai:gpt-4o-mini'"),
        ({"metrics": ["faithfullness"]}, "there is no metric 'faithfullness' here; did you mean 'faithfulness'"),
        ({"metrics": "faithfulness"}, "metrics is 'faithfulness', but should be a list of names and objects"),
        ({"metrics": [None]}, r"metrics\[0\] is None, but should be an object with a score method"),
        ({"redact": 5}, "redact is of type int, but should be a function that takes a text and returns one"),
        ({"sample_rate": 2}, "sample_rate is 2, but should be a number from 0 to 1"),
        ({"budget": 5}, "budget is 5, but should be a Budget"),
        ({"judge_when": "x: 0.5"}, "a metric in judge_when is 'x', but should be one of"),
        *(({one: "host:1"}, f"{one}= of configure .*should be an address") for one in ("phoenix", "mlflow")),
        ({"unknown_contexts": "no"}, "unknown_contexts is 'no', but should be one of skip, prompt"),
    ],
)
def test_a_wrong_argument_is_refused_by_name(arguments, message):
    with pytest.raises(ConfigurationError, match=message):
        configure(**arguments)


@pytest.mark.parametrize(
    ("given", "variables", "line"),
    [
        (
            {"emitters": ["console"], "metrics": ["faithfulness"], "sample_rate": 0.25},
            {},
            "0.25 of the answers of langchain, llama_index are scored by overlap (faithfulness); scores go to the console",
        ),
        (
            {},
            {"RAGSPAN_SINK": "takes://user:hush@host"},
            "answers of langchain, llama_index go to takes://host, where workers score them",
        ),
        ({}, {"RAGSPAN_ENABLED": "no"}, "RAGSPAN_ENABLED is false: nothing is captured, and nothing is scored"),
    ],
)
def test_what_happens_with_answers_is_one_line_of_the_log(caplog, monkeypatch, register, given, variables, line):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    register("ragspan_sink", takes=f"{__name__}:FleetSink")
    caplog.set_level(logging.INFO, "ragspan")

    configured = configure(**given)

    assert (configured.line, caplog.messages) == (line, [line])
    assert (configured.engine is None) == ("RAGSPAN_SINK" in variables)


class FleetSink(RecordingSink):
    def __init__(self, settings):
        super().__init__()

    def shutdown(self, timeout):
        pass


@pytest.mark.parametrize(
    ("error", "said"), [(ConfigurationError("set\n this"), "set this"), (SystemExit(3), "SystemExit: 3")]
)
def test_what_fails_where_ragspan_is_loaded_by_others_is_one_line_once(caplog, error, said):
    for _ in range(2):
        with set_up_or_off():
            raise error

    assert caplog.messages == [f"ragspan is off, and no answer is captured: {said}"]


WRITES = (
    r"^langfuse writes to the spans of answers, but nothing exports spans: set OTEL_EXPORTER_OTLP_TRACES_ENDPOINT and "
    r"OTEL_EXPORTER_OTLP_TRACES_HEADERS to where langfuse takes them \(docs/tracing-tools.md\)$"
)


@pytest.mark.parametrize("emitters", [["langfuse"], ["otel", "langfuse"], ["console", "langfuse"]])
def test_a_writer_to_spans_that_nothing_exports_is_refused_with_the_variables_for_it(monkeypatch, emitters):
    for name in ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_TRACES_EXPORTER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LANGFUSE_PUBLIC_KEY", "public")

    with pytest.raises(ConfigurationError, match="langfuse needs secret_key: set LANGFUSE_SECRET_KEY"):
        configure(emitters=emitters)
    monkeypatch.setenv("LANGFUSE_SECRET_KEY", "secret")
    with pytest.raises(ConfigurationError, match=WRITES):
        configure(emitters=emitters)


LAUNCHED = """
import sys
from opentelemetry.instrumentation import auto_instrumentation
auto_instrumentation.initialize(swallow_exceptions=False)
import later
print("later is", later.STATE)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"RAGSPAN_METRICS": "faithfulnes"}, "metrics or RAGSPAN_METRICS: there is no metric 'faithfulnes' here"),
        ({"RAGSPAN_JUDGE": "openai:gpt-4o-mini"}, "there is no key for OpenAI"),
        ({"RAGSPAN_REDACT": "ends:mask"}, "SystemExit: 3"),
    ],
    ids=str,
)
def test_a_wrong_setting_takes_no_other_tracing_away(tmp_path, variables, said):
    """A launcher that loads an instrumentor after ragspan's."""
    (tmp_path / "later.py").write_text(
        "STATE = 'off'\n"
        "class Instrumentor:\n"
        "    def instrument(self, **_):\n"
        "        global STATE\n"
        "        STATE = 'on'\n"
    )
    (tmp_path / "ends.py").write_text("raise SystemExit(3)")
    info = tmp_path / "zz_later-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: zz-later\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[opentelemetry_instrumentor]\nzz_later = later:Instrumentor\n")
    secret = ("RAGSPAN_", "OTEL_", "OPENAI_", "LANGFUSE_")
    others = {name: value for name, value in os.environ.items() if not name.startswith(secret)}
    path = os.pathsep.join(sorted({str(tmp_path), *sys.path}, key=lambda one: one == str(tmp_path)))
    exporters = {f"OTEL_{signal}_EXPORTER": "none" for signal in ("TRACES", "METRICS", "LOGS")}
    done = run_python("-c", LAUNCHED, environment=others | exporters | variables | {"PYTHONPATH": path})

    assert done.stdout.splitlines() == ["later is on"], done.stderr
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert "secret" not in done.stderr
