"""The libraries that capture requests, a file each: how to attach it, and how its own evaluation reads a request."""

from __future__ import annotations

import importlib
import importlib.metadata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from capturing.grading import Seen


class Attached(Protocol):
    """A peer that is attached to this process and sends nothing out of it."""

    @property
    def callbacks(self) -> Sequence[Any]:
        """The LangChain handlers to call a program with; none for a peer that attaches itself everywhere."""
        ...

    def begin(self) -> None:
        """A case is about to run: attach what has to be attached anew each time."""
        ...

    def seen(self) -> list[Seen]:
        """The requests that came in since the last call, as the peer's evaluation would read them."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Peer:
    """A library, and what to know about its part of the table."""

    name: str
    """The module that reads it, and the instrumentor whose spans it reads, if it is a receiver."""
    distributions: dict[str, str]
    """What has to be installed, by framework; where a framework is missing, the library has no handler for it."""
    reading: str
    """How its evaluation comes by question, contexts and response."""
    limits: str = ""
    """What its documentation or its source says that it does not cover."""

    def version(self, framework: str) -> str | None:
        """The installed version, or None; also where the library has no handler for this framework."""
        try:
            return importlib.metadata.version(self.distributions[framework])
        except (KeyError, importlib.metadata.PackageNotFoundError):
            return None

    def is_missing(self, framework: str) -> bool:
        """Whether there is a handler for this framework that is not installed."""
        return framework in self.distributions and self.version(framework) is None

    def attach(self, framework: str) -> Attached:
        module, *instrumentor = self.name.split("-")
        attached: Attached = importlib.import_module(f"capturing.readers.{module}").attach(framework, *instrumentor)
        return attached


PEERS = {
    peer.name: peer
    for peer in (
        Peer(
            name="ragspan",
            distributions={"langchain": "ragspan-langchain", "llama-index": "ragspan-llama-index"},
            reading="its own records",
            limits="the cases are its own tests, so its row says that they pass and no more",
        ),
        Peer(
            name="receiver-openinference",
            distributions={
                "langchain": "openinference-instrumentation-langchain",
                "llama-index": "openinference-instrumentation-llama-index",
            },
            reading="the records of ragspan-receiver, from the instrumentor's spans as OTLP",
        ),
        Peer(
            name="receiver-traceloop",
            distributions={
                "langchain": "opentelemetry-instrumentation-langchain",
                "llama-index": "opentelemetry-instrumentation-llamaindex",
            },
            reading="the records of ragspan-receiver, from Traceloop's spans as OTLP",
        ),
        Peer(
            name="receiver-opentelemetry",
            distributions={"langchain": "opentelemetry-instrumentation-genai-langchain"},
            reading="the records of ragspan-receiver, from the spans of OpenTelemetry's own instrumentation as OTLP",
            limits="its retrieval spans have ids of documents and no texts, and models without a name have no span",
        ),
    )
}
