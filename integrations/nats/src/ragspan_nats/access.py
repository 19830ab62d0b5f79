"""Where the broker is, and who we are to it."""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from ragspan.config import variable
from ragspan.exceptions import ConfigurationError

_SCHEMES = ("nats", "tls")
_PORT = 4222
_INBOX_PREFIX = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")


@dataclass(frozen=True, kw_only=True, slots=True)
class BrokerAccess:
    """A NATS server, or several of one cluster, with what it wants to know of us.

    Raises:
        ConfigurationError: the address is none, a file is missing, or two ways to sign in are given; the message holds no
            secret.
    """

    url: str = field(repr=False)
    """`nats://host:4222`, or `tls://host:4222` where the connection has to be encrypted; several with commas between
    them. It may hold a user and a password, or a token."""
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    nkey_file: str | None = None
    """A file with the seed of an NKey."""
    credentials_file: str | None = None
    """A file as `nsc` writes it, with a JWT and the seed of its NKey."""
    ca_file: str | None = None
    """Certificate authorities to trust in place of the system's."""
    certificate_file: str | None = None
    """Our own certificate, for brokers that ask for one."""
    key_file: str | None = None
    """Its private key, if it is not in the same file."""
    inbox_prefix: str = "_INBOX"
    """What the subjects begin with on which the broker answers us; one that nobody else may listen on keeps what workers
    are sent from other users of the broker."""

    def __post_init__(self) -> None:
        parts = [_split(url.strip()) for url in self.url.split(",")]
        for name in ("nkey_file", "credentials_file", "ca_file", "certificate_file", "key_file"):
            path = getattr(self, name)
            if path is not None and not _is_file(path):  # not shown: it may be a secret in the place of its file's name
                raise ConfigurationError(f"{name} should name a file, but there is no such file")
        if not _INBOX_PREFIX.fullmatch(self.inbox_prefix):
            raise ConfigurationError(
                f"inbox_prefix is {self.inbox_prefix!r}, but should be letters, digits, '_' and '-', with dots between them"
            )
        if self.key_file is not None and self.certificate_file is None:
            raise ConfigurationError("key_file is given without certificate_file, whose key it should be")
        ways = [name for name in ("user", "token", "nkey_file", "credentials_file") if getattr(self, name) is not None]
        if parts[0].username is not None:
            ways.append("the address")
        if len(ways) > 1:
            raise ConfigurationError(f"one way to sign in is enough, but there are several: {', '.join(ways)}")
        if (self.user is None) != (self.password is None):
            raise ConfigurationError("user and password go together, but there is only one of them")

    @classmethod
    def from_environment(cls, url: str) -> BrokerAccess:
        """The broker at this address, with the credentials of `RAGSPAN_NATS_*`.

        Raises:
            ConfigurationError: as above.
        """
        return cls(
            url=url,
            user=variable("RAGSPAN_NATS_USER"),
            password=variable("RAGSPAN_NATS_PASSWORD"),
            token=variable("RAGSPAN_NATS_TOKEN"),
            nkey_file=variable("RAGSPAN_NATS_NKEY_FILE"),
            credentials_file=variable("RAGSPAN_NATS_CREDENTIALS_FILE"),
            ca_file=variable("RAGSPAN_NATS_CA_FILE"),
            certificate_file=variable("RAGSPAN_NATS_CERTIFICATE_FILE"),
            key_file=variable("RAGSPAN_NATS_KEY_FILE"),
            inbox_prefix=variable("RAGSPAN_NATS_INBOX_PREFIX") or "_INBOX",
        )

    @property
    def place(self) -> str:
        """Host and port of each server, for people: without anything secret."""
        return ", ".join(f"{parts.hostname}:{parts.port or _PORT}" for parts in self._parts())

    @property
    def is_encrypted(self) -> bool:
        """Whether nothing may be said in the clear."""
        return any(one.scheme == "tls" for one in self._parts()) or bool(self.ca_file or self.certificate_file)

    def options(self) -> dict[str, Any]:
        """What `nats.connect` is to be given.

        Raises:
            ConfigurationError: a certificate or a key cannot be read.
        """
        parts = self._parts()
        user, password, token = self.user, self.password, self.token
        if parts[0].username is not None:
            name = unquote(parts[0].username)
            if parts[0].password is None:
                token = name
            else:
                user, password = name, unquote(parts[0].password)
        options: dict[str, Any] = {
            "servers": [f"{one.scheme}://{_host(one)}:{one.port or _PORT}" for one in parts],
            "user": user,
            "password": password,
            "token": token,
            "nkeys_seed": self.nkey_file,
            "user_credentials": self.credentials_file,
            "inbox_prefix": self.inbox_prefix,
        }
        if self.is_encrypted:
            options["tls"] = self._tls()
        return {name: value for name, value in options.items() if value is not None}

    def _parts(self) -> list[SplitResult]:
        return [_split(url.strip()) for url in self.url.split(",")]

    def _tls(self) -> ssl.SSLContext:
        try:
            context = ssl.create_default_context(cafile=self.ca_file)
            if self.certificate_file is not None:
                context.load_cert_chain(self.certificate_file, self.key_file)
        except (OSError, ssl.SSLError) as error:
            raise ConfigurationError(
                f"ca_file, certificate_file or key_file cannot be read as certificates: {type(error).__name__}"
            ) from None
        return context


def broker_address(given: str | None) -> str:
    """The broker's address: the given one, else that of `RAGSPAN_SINK`.

    Raises:
        ConfigurationError: there is none.
    """
    address = given or variable("RAGSPAN_SINK")
    if address is None:
        raise ConfigurationError("no broker is named: give --broker nats://host:4222, or set RAGSPAN_SINK to it")
    return address


def _split(url: str) -> SplitResult:
    # What is wrong is not shown: it may be a part of a password.
    try:
        parts = urlsplit(url)
        has_host = bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise ConfigurationError("the broker's address is none; write nats://host:4222") from None
    if parts.scheme not in _SCHEMES or not has_host:
        raise ConfigurationError("the broker's address should be like nats://host:4222 or tls://host:4222")
    if parts.path.strip("/") or parts.query or parts.fragment:
        raise ConfigurationError(
            "the broker's address goes on after host and port; write '/', '?', '#' and '@' in a password as %2F, %3F, %23 and %40"
        )
    return parts


def _is_file(path: str) -> bool:
    try:
        return Path(path).is_file()
    except (OSError, ValueError):  # no path at all
        return False


def _host(parts: SplitResult) -> str:
    host = parts.hostname or ""
    return f"[{host}]" if ":" in host else host
