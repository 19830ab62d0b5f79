import pytest

from ragspan.doctor.settings import read_settings


def found(state):
    _, findings = read_settings()
    return [f"{finding.found} {finding.advice or ''}" for finding in findings if finding.state == state]


def test_an_untouched_environment_is_told_to_be_one():
    settings, findings = read_settings()

    assert settings is not None
    assert findings[0].found == "no RAGSPAN_ variable changes a default"
    assert {finding.state for finding in findings} == {"ok"}


def test_what_differs_from_the_defaults_is_shown(set_variables):
    set_variables(RAGSPAN_CONCURRENCY="4", RAGSPAN_METRICS="faithfulness,completeness", RAGSPAN_OPENINFERENCE="no")

    _, findings = read_settings()

    assert findings[0].facts["changed"] == {
        "RAGSPAN_CONCURRENCY": "4",
        "RAGSPAN_METRICS": "faithfulness,completeness",
        "RAGSPAN_OPENINFERENCE": "false",
    }


def test_a_secret_is_only_said_to_be_set(set_variables):
    set_variables(
        RAGSPAN_JUDGE_API_KEY="very-secret", RAGSPAN_JUDGE_BASE_URL="http://user:hidden@localhost:1/v1?k=hush"
    )

    _, findings = read_settings()

    assert findings[0].facts["changed"] == {
        "RAGSPAN_JUDGE_API_KEY": "(set)",
        "RAGSPAN_JUDGE_BASE_URL": "http://localhost:1/v1",
    }


@pytest.mark.parametrize(
    ("value", "state", "words"),
    [
        ("string:capwords", "ok", "the function of RAGSPAN_REDACT takes a text and returns one"),
        ("builtins:len", "failed", "fails for a short text (it returned a int, not a str), so every record is dropped"),
        ("privacy", "failed", "RAGSPAN_REDACT is 'privacy', but should be module:function, such as 'privacy:mask'"),
        ("no_such_module:mask", "failed", "no_such_module cannot be imported: ModuleNotFoundError"),
    ],
)
def test_the_function_that_redacts_is_tried(set_variables, value, state, words):
    set_variables(RAGSPAN_REDACT=value)

    assert any(words in text for text in found(state))


def test_a_wrong_value_is_a_misuse_with_the_words_of_the_error(set_variables):
    set_variables(RAGSPAN_SAMPLE_RATE="2")

    settings, findings = read_settings()

    assert settings is None
    assert (findings[0].state, findings[0].is_misuse) == ("failed", True)
    assert findings[0].found == "RAGSPAN_SAMPLE_RATE is '2', but should be a number from 0 to 1"


@pytest.mark.parametrize(
    ("name", "hint"),
    [("RAGSPAN_JUGDE", "did you mean RAGSPAN_JUDGE?"), ("RAGSPAN_SOMETHING_QUITE_DIFFERENT", "docs/settings.md")],
)
def test_an_unknown_name_is_a_warning_with_a_suggestion(set_variables, name, hint):
    set_variables(**{name: "overlap"})

    [warning] = found("warning")

    assert f"{name} is set, but ragspan knows no such variable" in warning
    assert hint in warning


@pytest.mark.parametrize(("name", "value"), [("RAGSPAN_ENABLED", "false"), ("RAGSPAN_SAMPLE_RATE", "0")])
def test_a_setting_by_which_nothing_is_scored_fails(set_variables, name, value):
    set_variables(**{name: value})

    [failed] = found("failed")

    assert name in failed


def test_the_integrations_tell_their_frameworks():
    _, findings = read_settings()

    frameworks = {name for finding in findings for name in finding.facts.get("frameworks", ())}

    assert frameworks == {"langchain-core", "llama-index-core"}


def test_an_instrumentor_that_is_switched_off_is_pointed_out(set_variables):
    set_variables(OTEL_PYTHON_DISABLED_INSTRUMENTATIONS="httpx, ragspan_langchain")

    [warning] = found("warning")

    assert "OTEL_PYTHON_DISABLED_INSTRUMENTATIONS names ragspan_langchain" in warning


def test_a_framework_of_another_version_than_the_integration_asks_for_is_pointed_out(tmp_path, monkeypatch):
    """Another integration, as it would be installed, for a framework that cannot be here."""
    about = tmp_path / "ragspan_other-0.1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: ragspan-other\nVersion: 0.1.0\nProvides-Extra: instruments\n"
        'Requires-Dist: no-such-framework>=3; extra == "instruments"\n'
    )
    (about / "entry_points.txt").write_text(
        "[opentelemetry_instrumentor]\nragspan_other = ragspan_other:Instrumentor\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))

    [warning] = found("warning")

    assert "ragspan-other 0.1.0 for no-such-framework is not installed" in warning
    assert "opentelemetry-instrument leaves it out" in warning


def test_writers_without_spans_are_a_warning(set_variables):
    set_variables(RAGSPAN_EMITTERS="phoenix,mlflow")

    (warning,) = found("warning")

    assert "set it to otel,phoenix,mlflow" in warning
