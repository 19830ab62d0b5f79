"""Keeps the calls that a judge makes out of the application's own telemetry."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from opentelemetry import context

# OpenTelemetry has no public name for these keys, so a release may do without them. Instrumentations read the first (the
# plain one in early versions); those of HTTP clients read the last as well.
_PLAIN_KEY = "suppress_instrumentation"
_KEY: str = getattr(context, "_SUPPRESS_INSTRUMENTATION_KEY", _PLAIN_KEY)
_HTTP_KEY: str = getattr(context, "_SUPPRESS_HTTP_INSTRUMENTATION_KEY", _PLAIN_KEY)


@contextlib.contextmanager
def suppressed() -> Iterator[None]:
    """Let instrumentations ignore what happens inside, tasks and threads with a copied context included.

    Enter and leave it in the same task: OpenTelemetry's context belongs to a task.
    """
    quiet = context.get_current()
    for key in (_KEY, _PLAIN_KEY, _HTTP_KEY):
        quiet = context.set_value(key, value=True, context=quiet)
    token = context.attach(quiet)
    try:
        yield
    finally:
        context.detach(token)


def is_suppressed(current: context.Context | None = None) -> bool:
    """Whether the caller runs inside `suppressed()`, or inside the like of it that OpenTelemetry's packages have.

    A handler asks this to ignore the framework calls of a judge. `current` spares a look at the context.
    """
    if current is None:
        current = context.get_current()
    return bool(current.get(_KEY) or current.get(_PLAIN_KEY))
