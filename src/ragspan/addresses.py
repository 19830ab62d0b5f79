"""Addresses with secrets in them: what of one may be shown, and what must not stand in any message."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit, urlunsplit

_PLAIN = re.compile(r"v\d{1,2}(?:alpha|beta)?\d?|[a-z]{1,14}(?:[._-][a-z]{1,14}){0,3}")
"""Parts of a path that are words or versions, as no token is."""


def _split(url: str) -> SplitResult:
    """The parts of an address, whether or not it begins with a scheme.

    Raises:
        ValueError: it is none.
    """
    return urlsplit(url if "://" in url else f"//{url}")


def shown_url(url: str) -> str:
    """An address without what may be secret in it: user, password, query, fragment, and tokens in its path."""
    try:
        parts = _split(url)
    except ValueError:
        return "[not a URL]"
    path = "/".join(part if not part or _PLAIN.fullmatch(part) else "…" for part in parts.path.split("/"))
    shown = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], path, "", ""))
    return shown if parts.scheme else shown.removeprefix("//")


def secrets_in_url(url: str) -> Iterator[str]:
    """All that `shown_url` leaves out, in the spellings in which an endpoint may repeat it."""
    try:
        parts = _split(url)
        username, password = parts.username or "", parts.password or ""
    except ValueError:
        yield url
        return
    segments = [part for part in parts.path.split("/") if not _PLAIN.fullmatch(part)]
    values = [value for _, value in parse_qsl(parts.query)]
    for secret in (username, password, *segments, parts.query, *values, parts.fragment):
        yield secret
        yield unquote(secret)
    if username or password:
        yield basic_credentials(username, password)


def basic_credentials(username: str, password: str) -> str:
    """User and password of an address as HTTP's header has them, after `Basic`."""
    return base64.b64encode(f"{unquote(username)}:{unquote(password)}".encode()).decode()
