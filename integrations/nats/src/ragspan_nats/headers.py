"""Headers that a message can be published with once more.

Whoever may publish may have given a message any headers; what is read here is checked, and what cannot be published again is
left out.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ragspan_nats.message import ENCODING, TRACEPARENT, TRACESTATE

if TYPE_CHECKING:
    from nats.js import JetStreamContext
    from nats.js.api import RawStreamMsg

_NEEDED = frozenset({ENCODING, TRACEPARENT, TRACESTATE})
"""To read the record."""
_BROKERS = "Nats-"
_OURS = "Ragspan-"
_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,200}")  # what the client lets be a header's name
_FRAME = len(b"NATS/1.0\r\n" + b"\r\n")
_LINE = len(b": " + b"\r\n")
_MAX_HEADERS = 64 * 1024 - 1  # bytes that a stream takes
_MAX_TEXT = 300


def fitting(headers: Mapping[str, str], own: Mapping[str, str], payload: bytes, limit: int) -> dict[str, str] | None:
    """As many of the headers as a message of at most `limit` bytes has room for beside our own; None if not even those."""
    kept = {name: text for name, text in headers.items() if _NAME.fullmatch(name) and not _is_replaced(name, own)}
    needed = {name: text for name, text in kept.items() if name in _NEEDED}
    for chosen in ({**kept, **own}, {**needed, **own}, dict(own)):
        size = _size(chosen)
        if size <= _MAX_HEADERS and size + len(payload) <= limit:
            return chosen
    return None


def _is_replaced(name: str, own: Mapping[str, str]) -> bool:
    return name in own or name.startswith((_BROKERS, _OURS))


def _size(headers: Mapping[str, str]) -> int:
    """Bytes that the headers take in a message."""
    return _FRAME + sum(len(name) + len(text.encode()) + _LINE for name, text in headers.items())


def max_payload_of(jetstream: JetStreamContext) -> int:
    """Bytes that a message may have, headers included."""
    # The client takes more, since it does not count the headers, and the broker ends the connection then.
    return jetstream._nc.max_payload  # noqa: SLF001 - what JetStream's part of the client does not tell


def headers_of(message: RawStreamMsg) -> dict[str, str]:
    """The headers, read as the client reads those of messages that are delivered.

    Those of messages that are looked up it reads as e-mail, where a value may be an object, and one bad line hides the rest.
    """
    lines = base64.b64decode(message.hdrs or b"").split(b"\r\n")[1:]
    pairs = (line.partition(b":") for line in lines if b":" in line)
    return {name.strip().decode("ascii", "replace"): text.strip().decode("utf-8", "replace") for name, _, text in pairs}


def header_text(text: str) -> str:
    """One line of printable ASCII, as a header can hold it."""
    return "".join(sign if " " <= sign <= "~" else "?" for sign in text[:_MAX_TEXT])
