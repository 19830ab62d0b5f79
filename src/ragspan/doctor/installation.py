"""What is installed: ragspan and what it stands on, and the integrations with the frameworks that they ask for.

No framework is known by its name here: an integration's own distribution says what it works with.
"""

from __future__ import annotations

import importlib.metadata
import platform
import re
from collections.abc import Iterator, Sequence

from ragspan.config import variable
from ragspan.doctor.findings import Finding

_GROUP = "opentelemetry_instrumentor"
_OURS = "ragspan_"
_FOUNDATIONS = ("ragspan", "opentelemetry-sdk", "openai")
_REQUIREMENT = re.compile(r"""^\s*([\w.-]+).*;\s*extra\s*==\s*["']instruments["']\s*$""")


def examine_installation() -> Iterator[Finding]:
    versions = {"python": platform.python_version(), **{name: _version(name) for name in _FOUNDATIONS}}
    yield Finding(
        check="settings",
        state="ok",
        found=", ".join(f"{name} {version or 'is not installed'}" for name, version in versions.items()),
        facts={"versions": versions},
    )
    integrations = [
        point for point in importlib.metadata.entry_points(group=_GROUP) if point.name.startswith(_OURS) and point.dist
    ]
    if not integrations:
        yield Finding(
            check="settings",
            state="warning",
            found="no integration with a framework is installed: only ragspan.capture and records of your own are scored",
            advice="pip install 'ragspan[langchain]' or 'ragspan[llama-index]'",
        )
    for point in sorted(integrations, key=lambda point: point.name):
        yield _integration(point)


def _integration(point: importlib.metadata.EntryPoint) -> Finding:
    assert point.dist is not None  # noqa: S101 - chosen by it; for mypy
    distribution = point.dist
    frameworks = {name: _version(name) for name in _frameworks(distribution.requires or ())}
    present = ", ".join(f"{name} {version or 'is not installed'}" for name, version in frameworks.items())
    found = f"{distribution.name} {distribution.version}" + (f" for {present}" if present else "")
    conflict = _conflict(distribution)
    disabled = point.name in _disabled()
    advice = None
    if conflict:
        advice = f"it does not fit what is installed, and opentelemetry-instrument leaves it out: {conflict}"
    elif disabled:
        advice = f"opentelemetry-instrument leaves it out: OTEL_PYTHON_DISABLED_INSTRUMENTATIONS names {point.name}"
    return Finding(
        check="settings",
        state="warning" if advice else "ok",
        found=found,
        advice=advice,
        facts={"integration": point.name, "version": distribution.version, "frameworks": frameworks},
    )


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _frameworks(requirements: Sequence[str]) -> list[str]:
    """What the extra `instruments` names, by which instrumentors tell what they instrument."""
    return [match[1] for match in map(_REQUIREMENT.match, requirements) if match]


def _conflict(distribution: importlib.metadata.Distribution) -> str | None:
    """The same test as `opentelemetry-instrument` makes before it loads an instrumentor."""
    try:
        from opentelemetry.instrumentation.dependencies import get_dist_dependency_conflicts
    except ImportError:
        return None
    conflict = get_dist_dependency_conflicts(distribution)
    return None if conflict is None else str(conflict)


def _disabled() -> list[str]:
    names = variable("OTEL_PYTHON_DISABLED_INSTRUMENTATIONS") or ""
    return [name.strip() for name in names.split(",")]
