"""Documents, pictures and sound as blocks of a message: noted on the request path, and read in the worker, if they are texts."""

from __future__ import annotations

import base64
import binascii
import contextlib
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from ragspan.safe_copy import plain_scalar

FILES: Final = frozenset({"document", "image", "audio", "video"})
"""Types of blocks that are files."""
_MAX_BYTES = 4_000_000
_TEXTS = ("text/", "application/json", "application/xml", "application/x-yaml", "application/yaml", "application/csv")
_TAIL = 64
_PRINTABLE = frozenset("\n\r\t\f")


class File(NamedTuple):
    """A file in a message: its bytes, as the framework has them in base64, or where it is."""

    data: bytes | None
    kind: str | None
    """Its media type, if that is known."""
    address: str | None

    @property
    def end(self) -> str:
        """The end of its data or address, by which two are the same."""
        return (self.data[-_TAIL:].decode("ascii", "replace") if self.data else self.address or "file")[-_TAIL:]

    def text(self) -> str | None:
        """What it says; None if it is not text, or not here."""
        data, kind, address = self.data, self.kind, self.address or ""
        if data is None and address.startswith("data:"):
            head, _, body = address.removeprefix("data:").partition(";base64,")
            data, kind = body.encode("ascii", "replace"), head.partition(";")[0] or kind
        if data is None or len(data) > _MAX_BYTES or not (kind or _TEXTS[0]).startswith(_TEXTS):
            return None
        with contextlib.suppress(binascii.Error, ValueError):  # else it is the bytes themselves
            data = base64.b64decode(data, validate=True)
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            return None
        return text if all(character.isprintable() or character in _PRINTABLE for character in text) else None


def file_in(block: Mapping[str, Any]) -> File:
    """The file that a block of this content is."""
    data = next((held for name in ("data", "image") if type(held := block.get(name)) is bytes), None)
    kinds = (block.get(name) for name in ("document_mimetype", "image_mimetype"))
    places = (plain_scalar(block.get(name)) for name in ("url", "path"))
    return File(data, _first_text(kinds), _first_text(places))


def _first_text(values: Iterable[Any]) -> str | None:
    return next((value for value in values if type(value) is str), None)
