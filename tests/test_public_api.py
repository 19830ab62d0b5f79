"""What `import ragspan` promises."""

import pytest
from programs import output_of

import ragspan

CLIENTS = {"openai", "httpx", "requests", "opentelemetry.exporter"}
CLIENTS |= {"langfuse", "langsmith", "ddtrace", "mlflow", "phoenix"}
HEAVY = CLIENTS | {
    *("langchain", "langchain_core", "llama_index", "llama_index_instrumentation", "workflows", "nltk", "sqlalchemy"),
    *("torch", "transformers", "pandas", "rich", "typer", "opentelemetry.sdk"),
}
LLAMA_INDEX = "from ragspan_llama_index import RagspanLlamaIndexInstrumentor"
IMPORTS = {
    "import ragspan, ragspan.telemetry": HEAVY,
    "from ragspan import ScoringEngine, capture, default_engine": HEAVY - {"opentelemetry.sdk"},
    "import ragspan.judges, ragspan.metrics": HEAVY - {"opentelemetry.sdk"},
    "from ragspan_hhem import HHEMVerifier": HEAVY - {"opentelemetry.sdk"},
    "import ragspan.tools.phoenix, ragspan.tools.mlflow, ragspan.tools.datadog": HEAVY - {"opentelemetry.sdk"},
    "import ragspan.tools.langfuse, ragspan.tools.langsmith": HEAVY - {"opentelemetry.sdk"},
    LLAMA_INDEX: HEAVY - {"opentelemetry.sdk", "llama_index_instrumentation"},
    "RagspanLlamaIndexInstrumentor().instrument()": {"llama_index", "workflows", "nltk", "sqlalchemy"},
}


@pytest.mark.parametrize("name", ragspan.__all__)
def test_every_public_name_exists(name):
    assert getattr(ragspan, name) is not None


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'ScoringEngin'"):
        ragspan.ScoringEngin  # noqa: B018  the access is what is tested


def test_importing_loads_no_framework_and_no_client():
    """What has an entry point is loaded in every process that has the package, and a framework takes seconds."""
    program = "import sys\n" + "\n".join(f"{statement}\nprint(*sys.modules)" for statement in IMPORTS)
    loaded = output_of("-c", program).splitlines()

    for (statement, heavy), modules in zip(IMPORTS.items(), loaded, strict=True):
        assert not heavy & set(modules.split()), statement
