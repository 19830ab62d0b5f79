"""Documents, pictures and sound as blocks of a message: noted on the request path, and read in the worker, if they are texts."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from ragspan.safe_copy import plain_scalar

FILES: Final = frozenset({"document", "image", "audio", "video"})
"""Types of blocks that are files."""
_MAX_BYTES = 4_000_000
_TEXTS = ("text/", "application/json", "application/xml", "application/x-yaml", "application/yaml", "application/csv")
_TAIL = 64
_PRINTABLE = frozenset("\n\r\t\f")


class File(NamedTuple):
    """A file in a message: its bytes, as the framework has them, or where it is."""

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
            head, _, body = address.partition(",")
            kind = head.removeprefix("data:").partition(";")[0] or kind
            data = body.encode("utf-8", "replace") if head.endswith(";base64") else None
        if data is None or len(data) > _MAX_BYTES or not (kind or _TEXTS[0]).startswith(_TEXTS):
            return None
        try:
            text = _decoded(data).decode("utf-8-sig")
        except UnicodeDecodeError:
            return None
        return text if all(character.isprintable() or character in _PRINTABLE for character in text) else None


def file_in(block: Mapping[str, Any]) -> File:
    """The file that a block of this content is."""
    data, kinds = block.get("data"), ("document_mimetype", "image_mimetype")
    kind = next((found for name in kinds if type(found := block.get(name)) is str), None)
    places = (plain_scalar(block.get(name)) for name in ("url", "path"))
    if type(data) is not bytes:
        data = block.get("image")
    return File(
        data if type(data) is bytes else None, kind, next((place for place in places if type(place) is str), None)
    )


def _decoded(data: bytes) -> bytes:
    """The framework keeps bytes in base64."""
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return data
