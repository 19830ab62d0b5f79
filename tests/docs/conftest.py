"""What a reader of the documentation has: a folder with a program and tables, a judge, a collector and the tools."""

from __future__ import annotations

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.json as arrow_json
import pytest
from doc_pages import ROOT
from pyarrow import parquet
from servers.broker import Broker

HERE = Path(__file__).parent
STOOD_IN_FOR = ("pip", "make", "hf", "nats-server", "ragspan", "uvicorn")
TOOLS = {"langfuse": "Langfuse", "langsmith": "LangSmith", "datadog": "Datadog"}
NUMBERED = re.compile(r"exactly one verdict for each of these numbers: ([\d, ]+)\.")
LONGEST = 300  # seconds that a block may take
EXIT_TIMEOUT = "60"  # seconds: on a busy machine the usual ten may be over before the last score is out


@dataclass
class Reader:
    """Runs blocks in the reader's folder."""

    folder: Path
    addresses: dict[str, str]
    judge: object
    collector: object
    environment: dict[str, str] = field(default_factory=dict)
    tools: dict[str, object] = field(default_factory=dict)

    def with_addresses(self, text):
        for address, listener in self.addresses.items():
            text = text.replace(address, listener)
        return text

    def run(self, *command):
        """What the command printed; it has to end well."""
        done = subprocess.run(
            [str(part) for part in command],
            cwd=self.folder,
            env=self.environment | {"DOC_ADDRESSES": json.dumps(self.addresses)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=LONGEST,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout


def fake(tool, name):
    """A server that behaves as a backend does, as the tests of its emitter have it."""
    return runpy.run_path(str(ROOT / "tests" / "tools" / tool / "conftest.py"))[name]()


@pytest.fixture
def reader(fake_openai, otlp_listener, tmp_path):
    """The folder of a reader, in which every address that the pages name is one on this machine."""
    fake_openai.answer = lambda request: fake_openai.says(
        *[finding(fake_openai.parts(request) or [fake_openai.question(request)], request)] * (request.get("n") or 1),
        usage={"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
    )
    folder = tmp_path / "reader"
    shutil.copytree(HERE / "files", folder)
    phoenix, mlflow = fake("phoenix", "FakePhoenix"), fake("mlflow", "FakeMLflow")
    tools = {name: fake(name, f"Fake{kind}") for name, kind in TOOLS.items()}
    tools["langfuse"].keys, tools["langsmith"].key, tools["datadog"].key = b"pk-lf-1:sk-lf-1", "lsv2-1", "dd-1"
    judge = fake_openai.base_url.removesuffix("/v1")
    addresses = {
        "http://localhost:4318": otlp_listener.url,
        "http://collector:4318": otlp_listener.url,
        "--otlp 127.0.0.1:4318": "--otlp 127.0.0.1:0",
        "https://api.honeycomb.io": otlp_listener.url,
        "https://cloud.langfuse.com": tools["langfuse"].url,
        "https://api.smith.langchain.com": tools["langsmith"].url,
        "https://trace.agent.datadoghq.com": tools["datadog"].url,
        "http://localhost:6006": phoenix.url,
        "http://127.0.0.1:6006": phoenix.url,
        "http://localhost:5000": mlflow.url,
        "http://localhost:11434": judge,
        "http://localhost:8000": judge,
        "https://our-resource.openai.azure.com": judge,
    }
    parquet.write_table(arrow_json.read_json(folder / "answers.jsonl"), folder / "answers.parquet")
    environment = environment_of(folder, fake_openai) | {
        "LANGSMITH_ENDPOINT": tools["langsmith"].url,
        "DD_LLMOBS_OVERRIDE_ORIGIN": tools["datadog"].url,
    }
    yield Reader(folder, addresses, fake_openai, otlp_listener, environment, tools)
    phoenix.close()
    mlflow.close()
    for tool in tools.values():
        tool.close()


@pytest.fixture
def broker(reader, tmp_path):
    """A broker, under the addresses that the pages name."""
    started = Broker(tmp_path / "broker")
    started.start()
    for name in ("localhost", "broker"):
        reader.addresses[f"nats://{name}:4222"] = started.url
    yield started
    started.kill()


def environment_of(folder, judge):
    programs = folder.parent / "programs"
    programs.mkdir()
    for name in STOOD_IN_FOR:
        program = programs / name
        program.write_text(f'#!/bin/sh\nexec {sys.executable} {HERE / "stand_ins.py"} {name} "$@"\n', encoding="utf-8")
        program.chmod(0o755)
    ours = ("RAGSPAN_", "OTEL_", "PHOENIX_", "MLFLOW_", "OPENINFERENCE_", "LANGFUSE_", "LANGSMITH_", "DD_")
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith(ours)},
        "PATH": f"{programs}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}/usr/bin:/bin",
        "PYTHONPATH": str(HERE),
        "HOME": str(folder),
        "NO_PROXY": "*",
        "RAGSPAN_EXIT_TIMEOUT": EXIT_TIMEOUT,
        "OPENAI_BASE_URL": judge.base_url,
        "ANTHROPIC_BASE_URL": judge.base_url.removesuffix("/v1"),
        **dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "AZURE_OPENAI_API_KEY", "HONEYCOMB_API_KEY"), "a-key"),
    }


def finding(parts, request):
    """What a judge that finds everything in order replies."""
    task = request["messages"][-1]["content"]
    numbers = [int(number) for numbers in NUMBERED.findall(task)[-1:] for number in numbers.split(",")]

    def each(**verdict):
        return [{"number": number, "reasoning": "stated", **verdict} for number in numbers]

    replies = {
        "grounding": {"reasoning": "stated", "verdict": "grounded"},
        "completeness": {"reasoning": "stated", "value": 1.0},
        "claims": ["Card payments settle within two days."],
        "claim_verdicts": each(verdict="supported"),
        "context_verdicts": each(verdict="useful"),
        "judged_claims": {
            "claims": [{"claim": "Cards settle in two days.", "reasoning": "stated", "verdict": "supported"}],
            "more": False,
        },
    }
    return json.dumps({"answer": {part: replies[part] for part in parts}})
