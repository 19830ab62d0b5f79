"""Whose handlers are measured, and what they are on which framework."""

from __future__ import annotations

import importlib
import importlib.metadata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import cast

from peers.attachment import Attachment


@dataclass(frozen=True, kw_only=True, slots=True)
class Contestant:
    """One handler."""

    name: str
    module: str
    """In `peers`."""
    distributions: Mapping[str, str]
    """What has to be installed, by framework; a framework that is not here is one that it has no handler for."""
    attach: str = ""
    """How the module's function is called for a framework, behind the framework's name."""
    is_peer: bool = True
    exports: bool = True
    without: str = field(default="it has no handler")
    """Why a framework is not here."""

    def attachment(self, framework: str, sink: str) -> Attachment:
        module = importlib.import_module(f"peers.{self.module}")
        attach = getattr(module, framework.replace("-", "_") + self.attach)
        return cast("Callable[[str], Attachment]", attach)(sink)

    def version(self, framework: str) -> str | None:
        """What is installed; None if it is not."""
        try:
            return importlib.metadata.version(self.distributions[framework])
        except importlib.metadata.PackageNotFoundError:
            return None


_OURS = {"langchain": "ragspan-langchain", "llama-index": "ragspan-llama-index"}
_ONE_FOR_ALL = ("langchain", "llama-index")


def _everywhere(distribution: str) -> dict[str, str]:
    return dict.fromkeys(_ONE_FOR_ALL, distribution)


CONTESTANTS = [
    Contestant(name="ragspan", module="discarding", distributions=_OURS, is_peer=False, exports=False),
    Contestant(name="ragspan, with its engine", module="ragspan", distributions=_OURS, is_peer=False),
    Contestant(
        name="OpenInference",
        module="openinference",
        distributions={
            "langchain": "openinference-instrumentation-langchain",
            "llama-index": "openinference-instrumentation-llama-index",
        },
    ),
    Contestant(
        name="Langfuse",
        module="langfuse",
        distributions={"langchain": "langfuse"},
        without="its documentation has OpenInference's handler",
    ),
    Contestant(name="MLflow", module="mlflow", distributions=_everywhere("mlflow-skinny")),
]
BY_NAME = {contestant.name: contestant for contestant in CONTESTANTS}
