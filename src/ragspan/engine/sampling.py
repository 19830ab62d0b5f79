"""Draws that all processes make alike, for what is scored and for what a judge is asked about."""

from __future__ import annotations

import hashlib

from ragspan.records import RagRecord, SpanAnchor

_HASH_BYTES = 6  # a float holds them exactly, so the number stays below 1


def identity_of(record: RagRecord, span: SpanAnchor | None) -> str:
    """What draws go by: the trace of an answer, else the record itself."""
    trace = span or record.parent
    return f"{trace.trace_id:032x}" if trace is not None else record.record_id


def draw(identity: str, what: bytes = b"ragspan.sampling") -> float:
    """A number from 0 to below 1, always the same for the same identity, and another one for another thing to draw.

    A hash with a key of its own: a sampler of traces compares their bits to its rate, and a tenth taken by the same bits would
    be all of the tenth that it keeps.
    """
    digest = hashlib.blake2b(identity.encode(errors="surrogatepass"), digest_size=_HASH_BYTES, key=what).digest()
    return int.from_bytes(digest, "big") / (1 << 8 * _HASH_BYTES)
