"""Whoever follows one page in an empty environment is told there what to install."""

from __future__ import annotations

import re

import pytest
from doc_pages import PAGES, PYTHON, SHELL, name_of

# What a block uses, and the extras or packages of which one brings it.
OTLP = {"otlp", "receiver", "phoenix", "mlflow", "opentelemetry-exporter-otlp-proto-http"}
NEEDS = {
    r"OTEL_EXPORTER_OTLP_\w*ENDPOINT=|OTLPSpanExporter": OTLP,
    r"ragspan worker --otlp": {"receiver"},
    r"ragspan worker --broker|RAGSPAN_SINK=nats|NatsSink": {"nats"},
    r"ragspan run|opentelemetry-instrument|from langchain": {"langchain", "llama-index"},
    r"from llama_index": {"llama-index"},
    r"\.parquet": {"datasets"},
    r"evaluate --from|labels pull": {"receiver"},
    r"prometheus": {"opentelemetry-exporter-prometheus"},
    r"opentelemetry-instrument ": {"opentelemetry-distro"},
    r"import pandas|to_pandas|\bframe\b": {"pandas"},
    r"configure\(phoenix=|EMITTERS=\S*phoenix": {"phoenix"},
    r"configure\(mlflow=|EMITTERS=\S*mlflow": {"mlflow"},
    r"EMITTERS=\S*langfuse": {"langfuse"},
    r"EMITTERS=\S*langsmith": {"langsmith"},
    r"EMITTERS=\S*datadog": {"datadog"},
    r"faithfulness_hhem|HHEMVerifier": {"hhem"},
}
FOR_USERS = [
    page for page in PAGES if page.name not in {"CONTRIBUTING.md", "integration-authors.md", "architecture.md"}
]
INSTALL = re.compile(r"pip install ((?:[\"'][^\"']+[\"']|[\w.\[\],/-]+|\s(?!#))+)")


def installed(text):
    """The extras and packages that a page installs somewhere."""
    words = " ".join(INSTALL.findall(text.replace("\n", " ")))
    return set(re.findall(r"[a-z][a-z0-9-]*", words))


@pytest.mark.parametrize("page", FOR_USERS, ids=name_of)
def test_a_page_says_what_its_blocks_need(page):
    text = page.read_text(encoding="utf-8")
    used = "\n".join(block.text for block in (*PYTHON, *SHELL) if block.page == name_of(page) and not block.not_run)

    missing = {
        pattern: bringing
        for pattern, bringing in NEEDS.items()
        if re.search(pattern, used) and not bringing & installed(text)
    }

    assert missing == {}
