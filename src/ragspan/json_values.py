"""How many values a JSON text has, counted before they become objects, each of which takes a hundred bytes and more."""

from __future__ import annotations


def count_values(body: bytes | bytearray, most: int) -> int:
    """How many values the JSON has, about, and at least: all but the first follow a bracket or a comma.

    Those in texts are left out only if there would be more than `most` otherwise. A number beyond `most` need not be exact.
    """
    number = _marks(body)
    if number <= most:
        return number
    plain = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    if plain.count(b'"') > 4 * (most + 1):  # a mark stands before two texts at most: a name and its value
        return most + 1
    return _marks(b"".join(plain.split(b'"')[::2]))


def _marks(body: bytes | bytearray) -> int:
    return sum(map(body.count, (b"{", b"[", b",")))
