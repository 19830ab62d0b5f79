"""Addresses: the part that may be shown, the parts that no message may contain, and why one cannot be reached."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit, urlunsplit

_PLAIN = re.compile(r"v\d{1,2}(?:alpha|beta)?\d?|[a-z]{1,14}(?:[._-][a-z]{1,14}){0,3}")
"""Parts of a path that are words or versions, so not tokens."""


def shown_url(url: str) -> str:
    """An address without its possible secrets: user, password, query, fragment, and tokens in its path."""
    try:
        parts = urlsplit(url if "://" in url else f"//{url}")
    except ValueError:
        return "[not a URL]"
    path = "/".join(part if not part or _PLAIN.fullmatch(part) else "…" for part in parts.path.split("/"))
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], path, "", "")).removeprefix("//")


def secrets_in_url(url: str) -> Iterator[str]:
    """All parts that `shown_url` leaves out, in each spelling that an endpoint may repeat."""
    try:
        parts = urlsplit(url if "://" in url else f"//{url}")
    except ValueError:
        yield url
        return
    username, password = parts.username or "", parts.password or ""
    segments = [part for part in parts.path.split("/") if not _PLAIN.fullmatch(part)]
    values = [value for _, value in parse_qsl(parts.query)]
    named = "" if password and _PLAIN.fullmatch(username) else username  # a word, which is in other texts, too
    for secret in (named, password, *segments, parts.query, *values, parts.fragment):
        yield from (secret, unquote(secret))
    if username or password:
        yield basic(unquote(username), unquote(password)).removeprefix("Basic ")


def basic(username: str, password: str) -> str:
    """An authorization by name and password, as HTTP's header has it."""
    return "Basic " + base64.b64encode(f"{username}:{password}".encode()).decode()


def without_credentials(url: str) -> tuple[SplitResult, str | None]:
    """The parts of an HTTP address, and the authorization that its user and password make, if it has them.

    Raises:
        ValueError: it is not an address such as `http://host:port`. A message must not show it: it may hold a password.
    """
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.port == 0:
        raise ValueError("no address")
    bare = parts._replace(netloc=parts.netloc.rpartition("@")[2], fragment="")
    if bare.netloc == parts.netloc:
        return bare, None
    return bare, basic(unquote(parts.username or ""), unquote(parts.password or ""))


_CAUSES = {
    "SOCKS": "the environment names a SOCKS proxy, which needs a package: pip install pysocks",
    "CERTIFICATE_VERIFY_FAILED": "its certificate is not trusted",
    r"SSLError|\[SSL|SSL_ERROR": "no TLS connection can be made",
    "getaddrinfo|Name or service|nodename|name resolution|NameResolution": "the host name cannot be resolved",
    "[Rr]efused": "no server listens there: connection refused",
    "timed out|[Tt]imeout": "it does not answer in time",
    "BadStatusLine|HTTPException|LineTooLong": "what answers does not speak HTTP",
    "Connection(Reset|Aborted)|RemoteDisconnected|EOFError|[Dd]isconnected": "it closes the connection without an answer",
    "Invalid(Schema|URL)|MissingSchema|could not be cast": "it is not an address that begins with http:// or https://",
    "OSError|ConnectionError|ConnectError": "the connection fails",
}
"""A pattern for what libraries say, and our words. The first one counts."""


def cause_of(error: BaseException) -> str | None:
    """Why a connection failed, however many libraries have wrapped the error; None if it is about something else."""
    said, link = "", error
    for _ in range(10):  # a chain may be a circle
        said += repr(link)
        if (inner := link.__cause__ or link.__context__) is None:
            break
        link = inner
    return cause_in(said)


def cause_in(said: str) -> str | None:
    """Why a connection failed, by what a library says of it; None if that is about something else."""
    return next((words for pattern, words in _CAUSES.items() if re.search(pattern, said)), None)
