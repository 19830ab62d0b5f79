"""What `import ragspan` promises."""

import importlib
import subprocess
import sys

import pytest

import ragspan

FRAMEWORKS = (
    "langchain",
    "langchain_core",
    "llama_index",
    "llama_index_instrumentation",
    "openai",
    "torch",
    "transformers",
    "pandas",
    "rich",
    "typer",
)


@pytest.mark.parametrize("name", ragspan.__all__)
def test_every_public_name_exists(name):
    assert getattr(ragspan, name) is not None


def test_the_public_names_are_sorted_and_listed():
    assert ragspan.__all__ == sorted(ragspan.__all__)
    assert set(ragspan.__all__) <= set(dir(ragspan))


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'ScoringEngin'"):
        ragspan.ScoringEngin  # noqa: B018  the access is what is tested


@pytest.mark.parametrize(
    ("module", "names"),
    [
        (
            "ragspan.metrics",
            [
                "AnswerRelevance",
                "ChunkAttribution",
                "ChunkUtilization",
                "Completeness",
                "ContextAdherence",
                "ContextRelevance",
                "ContextUtilization",
                "Faithfulness",
                "FaithfulnessWithHHEM",
            ],
        ),
        ("ragspan.judges", ["OpenAIJudge", "OverlapJudge"]),
        ("ragspan.telemetry", ["OTelEmitter"]),
        ("ragspan.datasets", ["Evaluation", "ResultFile", "aevaluate", "evaluate"]),
        ("ragspan.testing", ["FakeJudge", "InMemoryTelemetry", "RecordingEmitter", "RecordingSink", "assert_scores"]),
        ("ragspan.delivery", ["DeliveryOptions", "ScoreWriter"]),
        ("ragspan_datadog", ["DatadogEvaluations"]),
        ("ragspan_langfuse", ["LangfuseScores"]),
        ("ragspan_langsmith", ["LangSmithFeedback"]),
        ("ragspan_hhem", ["HHEMVerifier"]),
        ("ragspan_nats", ["BrokerAccess", "NatsSink", "SinkStats", "Stream"]),
        ("ragspan_phoenix", ["PhoenixAnnotations"]),
        ("ragspan_langchain", ["LangChainChatClient", "RagspanCallbackHandler", "RagspanLangChainInstrumentor"]),
        ("ragspan_llama_index", ["LlamaIndexChatClient", "RagspanCallbackHandler", "RagspanLlamaIndexInstrumentor"]),
    ],
)
def test_the_names_that_users_type_can_be_imported(module, names):
    home = importlib.import_module(module)

    assert set(names) <= set(dir(home))
    assert [name for name in names if getattr(home, name, None) is None] == []


def loaded_after(statement):
    program = f"import sys; {statement}; print(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return {module.partition(".")[0] for module in done.stdout.split()}


@pytest.mark.parametrize(
    "statement",
    [
        "import ragspan",
        "from ragspan import ScoringEngine, capture, default_engine",
        "import ragspan.judges, ragspan.metrics",
        "from ragspan_hhem import HHEMVerifier",
    ],
)
def test_importing_ragspan_imports_no_framework_and_no_client(statement):
    assert not loaded_after(statement) & set(FRAMEWORKS)


@pytest.mark.parametrize(
    "statement",
    [
        "import ragspan_llama_index",
        "from ragspan_llama_index import RagspanLlamaIndexInstrumentor",
        "from ragspan_llama_index import RagspanLlamaIndexInstrumentor; RagspanLlamaIndexInstrumentor().instrument()",
    ],
)
def test_the_instrumentor_does_not_import_llama_index(statement):
    """It is loaded in every process that has the package, and the framework takes seconds."""
    assert not loaded_after(statement) & {"llama_index", "workflows", "nltk", "sqlalchemy"}
