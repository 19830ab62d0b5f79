"""Tells errors of the service from errors about one request, whatever client raised them."""

from __future__ import annotations

import re
from collections.abc import Mapping

_OUT = frozenset({401, 402, 403, 404, 407, 408, 425, 429})
"""No key, no money, no such model, too many requests: the next request will fare no better. So it is from 500 on."""
_SERVER_ERROR = 500
_ERRORS = range(400, 600)

_ABOUT_THE_REQUEST = re.compile(
    r"Context(?:Window|Length|Overflow)|ContentFilter|LengthFinish|Blocked|Refus|Parser|Safety"
)
"""In names of exceptions that carry no status."""


def is_outage(error: BaseException) -> bool:
    """Whether other requests would fail as well now.

    An HTTP status decides, of the error or of its cause; without one it is an outage unless the type says that something
    is wrong with the request or the reply: `ValueError`, `TypeError`, or a name such as `ContextWindowExceeded`.
    """
    for candidate in (error, error.__cause__):
        status = _status_of(candidate)
        if status is not None:
            return status in _OUT or status >= _SERVER_ERROR
    if isinstance(error, OSError):  # among them errors of `requests` that are a `ValueError` too
        return True
    if isinstance(error, (ValueError, TypeError, NotImplementedError)):
        return False
    return not any(_ABOUT_THE_REQUEST.search(kind.__name__) for kind in type(error).__mro__)


def _status_of(error: BaseException | None) -> int | None:
    """The HTTP status where clients keep it: on the error, on its response, or in the response's metadata (AWS)."""
    response = getattr(error, "response", None)
    metadata = response.get("ResponseMetadata") if isinstance(response, Mapping) else None
    places = (
        getattr(error, "status_code", None),
        getattr(error, "http_status", None),
        getattr(error, "code", None),
        getattr(response, "status_code", None),
        metadata.get("HTTPStatusCode") if isinstance(metadata, Mapping) else None,
    )
    return next((int(status) for status in places if isinstance(status, int) and status in _ERRORS), None)
