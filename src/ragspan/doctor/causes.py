"""Tells from an error what is wrong with a connection, however many libraries have wrapped it."""

from __future__ import annotations

import http.client
import socket
import ssl
from collections.abc import Iterator
from typing import Literal, TypeAlias

Trouble: TypeAlias = Literal["certificate", "tls", "refused", "name", "timeout", "closed", "protocol", "unreachable"]

_MAX_CAUSES = 50
_KINDS: tuple[tuple[Trouble, tuple[type[BaseException], ...]], ...] = (
    ("certificate", (ssl.SSLCertVerificationError,)),
    ("tls", (ssl.SSLError,)),
    ("name", (socket.gaierror,)),
    ("refused", (ConnectionRefusedError,)),
    ("timeout", (TimeoutError, socket.timeout)),
    ("closed", (ConnectionError, EOFError)),
    ("protocol", (http.client.HTTPException,)),
    ("unreachable", (OSError,)),
)


def trouble_with(error: BaseException) -> Trouble | None:
    """What kept the connection from working, None if the error is about something else."""
    causes = list(_causes_of(error))
    # From the innermost out: libraries derive their own errors from OSError, too.
    return next((kind for kind, types in _KINDS for cause in reversed(causes) if isinstance(cause, types)), None)


def _causes_of(error: BaseException) -> Iterator[BaseException]:
    """The error and all that led to it, whether or not somebody wrote `from None`."""
    waiting: list[object] = [error]
    seen: set[int] = set()
    while waiting and len(seen) < _MAX_CAUSES:
        cause = waiting.pop(0)
        if not isinstance(cause, BaseException) or id(cause) in seen:
            continue
        seen.add(id(cause))
        yield cause
        # Groups keep their errors, urllib3 keeps the cause of its last attempt, and requests wraps by argument.
        waiting += [cause.__cause__, cause.__context__, getattr(cause, "reason", None)]
        waiting += [*getattr(cause, "exceptions", ()), *cause.args]


EXPLANATIONS: dict[Trouble, str] = {
    "certificate": "its certificate is not trusted",
    "tls": "no TLS connection can be made",
    "refused": "nobody listens there (connection refused)",
    "name": "the host name cannot be resolved",
    "timeout": "it does not answer in time",
    "closed": "it closes the connection without an answer",
    "protocol": "what answers does not speak HTTP",
    "unreachable": "it cannot be reached",
}
