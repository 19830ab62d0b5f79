"""What `import ragspan` promises."""

import pytest
from programs import output_of

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


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'ScoringEngin'"):
        ragspan.ScoringEngin  # noqa: B018  the access is what is tested


def loaded_after(statement):
    program = f"import sys; {statement}; print(' '.join(sys.modules))"
    return {module.partition(".")[0] for module in output_of("-c", program).split()}


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
