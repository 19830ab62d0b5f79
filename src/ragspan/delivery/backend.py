"""What a backend says: how one batch is written, and what became of each item in it."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias, TypeVar
from urllib.parse import unquote, urlsplit, urlunsplit

from ragspan.arguments import SECONDS, SOME_SECONDS, WHOLE
from ragspan.exceptions import ConfigurationError


class Deliverable(Protocol):
    """One thing to write. It should hold what is written and nothing else, for it may wait."""

    @property
    def key(self) -> Hashable:
        """What it is written to, such as the span and the name of the score. A later item of a key replaces one that waits."""
        ...

    @property
    def size(self) -> int:
        """About how many bytes of memory it takes, for the bound on what waits."""
        ...


@dataclass(frozen=True, slots=True)
class Delivered:
    """The backend has it."""


@dataclass(frozen=True, slots=True)
class SpanNotFound:
    """The backend does not know the span or trace yet; the item is tried again, by itself."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The backend failed at it and may do better later; the item is tried again, by itself."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """The backend will never take it."""

    reason: str
    """One of few kinds: it becomes an attribute value."""


WriteResult: TypeAlias = Delivered | SpanNotFound | Failed | Rejected


class BatchRejected(Exception):  # noqa: N818 - it is a state, not a mistake
    """The backend rejects the batch for good, perhaps because of one item: it is split until that item is found.

    Args:
        reason: one of few kinds, for counts and the log ("ConnectError", "http_503"); never an address or a key.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Unavailable(Exception):  # noqa: N818 - as above
    """The backend takes nothing at the moment: it is away, busy, or wants other credentials. Everything waits for it.

    For what may be the fault of an item in the batch, such as an error 500, raise anything else: the items are then tried
    in ever smaller batches.

    Args:
        reason: as above.
        retry_after: seconds that the backend asks to be left alone; None if it does not say.
    """

    def __init__(self, reason: str, *, retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.retry_after = retry_after


_Item_contra = TypeVar("_Item_contra", bound=Deliverable, contravariant=True)


class ScoreBackend(Protocol[_Item_contra]):
    """A connection to a backend. Used by one thread at a time, with instrumentation suppressed."""

    def write(self, batch: Sequence[_Item_contra]) -> Sequence[WriteResult]:
        """Write the batch, which has at least one item and no two of one key; what became of each, in order.

        Writing an item a second time must not make a second one there: a reply may get lost. It may take its time, but needs
        a time limit of its own.

        Raises:
            Unavailable: the backend takes nothing at the moment.
            BatchRejected: it will never take this batch as it is.
            Exception: the batch failed as a whole, and may do better in parts or later.
        """
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class DeliveryOptions:
    """How long scores are retried, and how many may wait.

    Raises:
        ConfigurationError: a limit is not allowed; the message names it.
    """

    queue_size: int = 10_000
    """Items that may wait, at least 1; beyond, the oldest are dropped."""
    queue_bytes: int = 16 * 1024 * 1024
    """Bytes that they may take, at least 1; beyond, the oldest are dropped."""
    batch_size: int = 100
    """Items that are written at once, at least 1."""
    linger: float = 1.0
    """Seconds, 0 or more, that an item waits for others to go along with, and for its span to arrive."""
    retry_window: float = 600.0
    """Seconds, more than 0, from an item's emission on, for which it is tried again; then it is lost."""

    def __post_init__(self) -> None:
        WHOLE.check_fields(self, "queue_size", "queue_bytes", "batch_size")
        SECONDS.check_fields(self, "linger")
        SOME_SECONDS.check_fields(self, "retry_window")


@dataclass(frozen=True, kw_only=True, slots=True)
class Endpoint:
    """A server that is reached by HTTP, and who we are there."""

    url: str
    """Without a slash at its end, and without credentials."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """For each request, by lower-case name; the authorization is one of them."""
    timeout: float = 10.0
    """Seconds that it may take to answer."""
    certificates: str | None = None
    """A file or folder of certificate authorities to trust in place of the usual ones."""
    client_certificate: str | None = None
    """A file with our own certificate and its key."""
    checks_certificate: bool = True

    @classmethod
    def at(
        cls, name: str, url: str, *, headers: Mapping[str, str] | None = None, timeout: float, **tls: Any
    ) -> Endpoint:
        """The server at this address; credentials in it become an authorization, unless the headers have one.

        Args:
            name: where the address comes from, for the message.
            url: the address.
            headers: for each request.
            timeout: seconds, more than 0.
            tls: the other fields.

        Raises:
            ConfigurationError: it is no address, or no time limit. The address is not shown: it may hold a password.
        """
        SOME_SECONDS.check("timeout", timeout)
        try:
            parts = urlsplit(url)
            is_address = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
        except (ValueError, AttributeError):
            is_address = False
        if not is_address:
            raise ConfigurationError(f"{name} should be an address such as http://host:port")
        chosen = dict(headers or {})
        if parts.username is not None:
            chosen.setdefault("authorization", basic(unquote(parts.username), unquote(parts.password or "")))
        bare = parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="")
        return cls(url=urlunsplit(bare).rstrip("/"), headers=chosen, timeout=timeout, **tls)


def basic(username: str, password: str) -> str:
    """An authorization by name and password."""
    return "Basic " + b64encode(f"{username}:{password}".encode()).decode()


DropReason: TypeAlias = Literal[
    "no_span", "queue_full", "queue_bytes", "replaced", "span_not_found", "unavailable", "failed", "shutdown"
]
"""Why an item was given up that nobody rejected: the last trouble, where its time ran out; `replaced` by a later one."""
DeliveryResult: TypeAlias = Literal["delivered", "rejected", "dropped"]
Ending: TypeAlias = tuple[DeliveryResult, str | None]
"""A result with its reason; a delivery has none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DeliveryStats:
    """Where everything is that was emitted: `offered = waiting + delivered + rejected + dropped`, at every moment."""

    offered: int
    waiting: int
    """Those that are being written included."""
    delivered: int
    rejected: Mapping[str, int]
    """By the backend's reason."""
    dropped: Mapping[str, int]
    """By reason, see `DropReason`."""
