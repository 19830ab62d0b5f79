"""Which tool answers at an endpoint, where that can be told, and what it does with scores."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import urlsplit, urlunsplit

from ragspan.doctor.watching import Reply
from ragspan.telemetry.environment import Signal

Ask: TypeAlias = "Callable[[str], Reply | None]"
"""Gets the page at a URL; None where nothing comes of it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Backend:
    """A tool that takes spans."""

    name: str
    shows_scores: str
    """Where in it the scores are to be seen, and where not."""
    search: str
    """What finds a record in it; `{record_id}` and `{trace_id}` stand for the ids."""
    takes: Sequence[Signal]
    """The signals that it has OTLP endpoints for."""


PHOENIX = Backend(
    name="Phoenix",
    shows_scores="scores are in the Attributes tab of the answer's span; the annotations column has only what is "
    "written through Phoenix's own API",
    search="filter spans by attributes['ragspan']['record_id'] == '{record_id}'",
    takes=("traces",),
)
MLFLOW = Backend(
    name="MLflow",
    shows_scores="scores are attributes of the answer's span; the assessments column has only what is written through "
    "MLflow's own API",
    search="open the trace tr-{trace_id}",
    takes=("traces",),
)
LANGFUSE = Backend(
    name="Langfuse",
    shows_scores="scores are in the metadata of the answer's observation; its own scores are only those that are "
    "written through Langfuse's API",
    search="open the trace {trace_id}",
    takes=("traces", "metrics"),
)
RECEIVER = Backend(
    name="a receiver of the OpenTelemetry Collector (Jaeger and Tempo have the same)",
    shows_scores="scores are attributes of the answer's span in the tool behind it",
    search="search for the tag ragspan.record_id={record_id}",
    takes=("traces", "metrics", "logs"),
)

_VERSION = re.compile(rb"\d+\.\d+\.\d+\S*")


def identify(url: str, reply: Reply, ask: Ask) -> Backend | None:
    """The tool that gave this reply to spans sent to `url`; None if it cannot be told."""
    if "x-phoenix-server-version" in reply.headers:
        return PHOENIX
    if "/api/public/otel" in urlsplit(url).path:
        return LANGFUSE
    if b"x-mlflow-" in reply.body.lower() or _is_mlflow(url, ask):
        return MLFLOW
    page = ask(_beside(url, "/"))
    if page is not None and b"404 page not found" in page.body:  # how servers written in Go say it
        return RECEIVER
    return None


def _is_mlflow(url: str, ask: Ask) -> bool:
    version = ask(_beside(url, "/version"))
    if version is None or version.status != _OK or not _VERSION.fullmatch(version.body.strip()):
        return False
    health = ask(_beside(url, "/health"))
    return health is not None and health.body.strip() == b"OK"


def _beside(url: str, path: str) -> str:
    """A path beside the one for spans, on the same server and below the same prefix."""
    parts = urlsplit(url)
    prefix = parts.path.rstrip("/").removesuffix("/v1/traces")
    return urlunsplit((parts.scheme, parts.netloc, prefix + path, "", ""))


_OK = 200
