"""What a stream says to a message."""

from __future__ import annotations

import enum
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nats.aio.msg import Msg

_NO_RESPONDERS = "503"
_NO_ROOM = frozenset(
    {10002, 10023, 10028, 10047, 10077}
)  # for the account, in the server, its memory, its store, the stream
_TOO_LARGE = frozenset({10054, 10097})  # the message for the stream, or its headers for any


class Answer(enum.Enum):
    """What became of one publish."""

    STORED = enum.auto()
    """The stream has it, now or since before."""
    FULL = enum.auto()
    """The stream, or the broker's store, has no room."""
    TOO_LARGE = enum.auto()
    """It will never be taken."""
    NO_STREAM = enum.auto()
    """Nobody keeps what is published to this subject."""
    REFUSED = enum.auto()
    """Anything else; it may be taken later."""


def answer_in(message: Msg) -> Answer:
    """What this reply to a publish says. Garbage is a refusal."""
    if message.headers and message.headers.get("Status") == _NO_RESPONDERS:
        return Answer.NO_STREAM
    try:
        reply = json.loads(message.data)
    except ValueError:
        return Answer.REFUSED
    if not isinstance(reply, dict):
        return Answer.REFUSED
    error = reply.get("error")
    if error is None:
        return Answer.STORED if isinstance(reply.get("seq"), int) and "stream" in reply else Answer.REFUSED
    return _answer_to(error)


def _answer_to(error: Any) -> Answer:
    code = error.get("err_code") if isinstance(error, dict) else None
    if not isinstance(code, int):
        return Answer.REFUSED
    if code in _NO_ROOM:
        return Answer.FULL
    return Answer.TOO_LARGE if code in _TOO_LARGE else Answer.REFUSED
