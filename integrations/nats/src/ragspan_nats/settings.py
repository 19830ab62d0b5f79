"""Settings: the broker and our credentials, the stream and its limits, and how a worker works."""

from __future__ import annotations

import os.path
import re
import ssl
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from ragspan.arguments import SECONDS, SOME_SECONDS, WHOLE, number, whole, wrong
from ragspan.config import variable
from ragspan.exceptions import ConfigurationError

_SCHEMES = ("nats", "tls")
_PORT = 4222
_FILES = ("credentials_file", "ca_file", "certificate_file")
_VARIABLES = (*_FILES, "inbox_prefix")
"""Fields of `BrokerAccess` that have a variable, `RAGSPAN_NATS_CA_FILE` and so on."""
_INBOX_PREFIX = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, kw_only=True, slots=True)
class BrokerAccess:
    """A NATS server, or several of one cluster, and our credentials.

    Raises:
        ConfigurationError: the address is invalid, a file is missing, or there are two ways to sign in. No secret is in the message.
    """

    url: str = field(repr=False)
    """`nats://host:4222`, or `tls://host:4222` for an encrypted connection; several with commas between them. It may hold a user
    and a password, or a token; there '/', '?', '#' and '@' are written as %2F, %3F, %23 and %40."""
    credentials_file: str | None = None
    """A file that `nsc` wrote, with a JWT and the seed of its NKey."""
    ca_file: str | None = None
    """Certificate authorities to trust in place of the system's."""
    certificate_file: str | None = None
    """Our own certificate and its private key, for brokers that require one."""
    inbox_prefix: str = "_INBOX"
    """The first part of the subjects on which the broker answers us. If nobody else may subscribe to them, other users of the
    broker cannot read what workers receive."""

    def __post_init__(self) -> None:
        servers = self._servers()
        for name in _FILES:
            path = getattr(self, name)
            # `Path.is_file` raises for some texts. The path is not shown: it may be a secret by mistake.
            if path is not None and not os.path.isfile(path):  # noqa: PTH113
                told = f"{name} (RAGSPAN_NATS_{name.upper()}) should name a file, but there is no such file"
                raise ConfigurationError(told)
        if not _INBOX_PREFIX.fullmatch(self.inbox_prefix):
            raise wrong("inbox_prefix", self.inbox_prefix, "letters, digits, '_' and '-', with dots between them")
        if servers[0].username is not None and self.credentials_file is not None:
            raise ConfigurationError("credentials_file and the address both say how to sign in, but one way is enough")

    @classmethod
    def from_environment(cls, url: str | None = None) -> BrokerAccess:
        """The broker at this address or at `RAGSPAN_SINK`, with the files of `RAGSPAN_NATS_*`, if all of that is valid."""
        address = url or variable("RAGSPAN_SINK")
        if address is None:
            words = (
                "give --broker nats://host:4222, or set RAGSPAN_SINK to it; --otlp HOST:PORT receives traces instead"
            )
            raise ConfigurationError(f"no broker is named: {words}")
        given = {name: variable(f"RAGSPAN_NATS_{name.upper()}") for name in _VARIABLES}
        return cls(url=address, **{name: value for name, value in given.items() if value is not None})

    @property
    def place(self) -> str:
        """Host and port of each server. It holds no secret."""
        return ", ".join(_host(one) for one in self._servers())

    @property
    def is_encrypted(self) -> bool:
        """Whether nothing may be sent in the clear."""
        return any(one.scheme == "tls" for one in self._servers()) or bool(self.ca_file or self.certificate_file)

    def options(self) -> dict[str, Any]:
        """The arguments of `nats.connect`; a `ConfigurationError` if a file cannot be read."""
        servers = self._servers()
        name, password = servers[0].username, servers[0].password
        context = None
        if self.is_encrypted:
            try:
                context = ssl.create_default_context(cafile=self.ca_file)
                if self.certificate_file is not None:
                    context.load_cert_chain(self.certificate_file)
            except (OSError, ssl.SSLError) as error:
                words = "ca_file or certificate_file cannot be read as certificates"
                raise ConfigurationError(f"{words}: {type(error).__name__}") from None
        options: dict[str, Any] = {
            "servers": [f"{one.scheme}://{_host(one)}" for one in servers],
            "token" if password is None else "user": None if name is None else unquote(name),
            "password": None if password is None else unquote(password),
            "user_credentials": self.credentials_file,
            "inbox_prefix": self.inbox_prefix,
            "tls": context,
        }
        return {name: value for name, value in options.items() if value is not None}

    def _servers(self) -> list[SplitResult]:
        """The servers; no message shows the address, for a part of it may be a password."""
        found = []
        for url in self.url.split(","):
            try:
                parts = urlsplit(url.strip())
                is_one = parts.scheme in _SCHEMES and bool(parts.hostname) and parts.port != 0
            except ValueError:
                is_one = False
            if not is_one or parts.path.strip("/") or parts.query or parts.fragment:
                raise ConfigurationError(
                    "the broker's address should be like nats://host:4222 or tls://host:4222; in a password write "
                    "'/', '?', '#' and '@' as %2F, %3F, %23 and %40"
                )
            found.append(parts)
        return found


def _host(parts: SplitResult) -> str:
    host = parts.netloc.rpartition("@")[2]
    return host if parts.port else f"{host}:{_PORT}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Stream:
    """The stream of a fleet's records: its name, from which all other names follow. One with other limits than ours is left as it is.

    Raises:
        ConfigurationError: the name is invalid, or the number of copies.
    """

    name: str = "ragspan"
    """Letters, digits, `-` and `_`."""
    replicas: int = 1
    """Servers of the cluster that keep a copy, 1 to 5, where we make the stream. With 3, nothing is lost if one server is."""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise wrong("stream", self.name, "letters, digits, '-' and '_'")
        whole(1, 5).check_fields(self, "replicas")

    @classmethod
    def from_environment(cls, name: str | None = None) -> Stream:
        """The stream of this name or of `RAGSPAN_NATS_STREAM`, with `RAGSPAN_NATS_REPLICAS` copies; errors as above."""
        copies = variable("RAGSPAN_NATS_REPLICAS") or "1"
        whole(1, 5).check("RAGSPAN_NATS_REPLICAS", int(copies) if copies.isdecimal() else copies)
        return cls(name=(variable("RAGSPAN_NATS_STREAM") or "ragspan") if name is None else name, replicas=int(copies))

    @property
    def records(self) -> str:
        """The subject of records."""
        return f"{self.name}.records"

    @property
    def consumer(self) -> str:
        """The consumer that all workers share."""
        return f"{self.name}-workers"

    @property
    def dead_stream(self) -> str:
        return f"{self.name}-dead-letters"

    @property
    def dead_letters(self) -> str:
        """Their subject."""
        return f"{self.name}.dead_letters"


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerOptions:
    """How a worker works; a `ConfigurationError` names a figure that is out of its range."""

    concurrency: int = 16
    """Records that are scored at the same time, at least 1."""
    ack_wait: float = 30.0
    """Seconds, 1 or more. If the broker gets no heartbeat for so long, it gives the worker's records to others."""
    max_deliveries: int = 5
    """How often a record is delivered before it becomes a dead letter, at least 1."""
    drain_timeout: float = 25.0
    """Seconds, 0 or more, in which a worker that stops finishes what is in flight. It gives back the rest."""
    export_retry_timeout: float = 600.0
    """Seconds, more than 0, for which the worker keeps scores that the backend does not take. Then it gives the record back."""

    def __post_init__(self) -> None:
        WHOLE.check_fields(self, "concurrency", "max_deliveries")
        number("a number of seconds, 1 or more", lambda seconds: seconds >= 1).check_fields(self, "ack_wait")
        SECONDS.check_fields(self, "drain_timeout")
        SOME_SECONDS.check_fields(self, "export_retry_timeout")
