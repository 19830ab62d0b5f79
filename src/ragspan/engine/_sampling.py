"""Which records are scored: decided from the record alone, so that every process decides the same."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from ragspan.records import RagRecord, SpanAnchor

_HASH_BYTES = 6  # a float holds them exactly, so the number stays below 1
_KEY = b"ragspan.sampling"


@dataclass(frozen=True, kw_only=True, slots=True)
class Sampling:
    """A share of the answers, chosen by trace id, so that a metric scores all answers of a trace or none.

    All metrics go by the same draw: what a metric with a lower share scores, those with a higher one score as well.
    """

    rate: float = 1.0
    """0..1."""
    metric_rates: Mapping[str, float] = field(default_factory=dict)
    """0..1, of metrics by name that have a share of their own in place of `rate`."""
    score_unsampled: bool = False
    """Score answers whose trace is not sampled, too."""

    def chooses(self, metric: str, record: RagRecord, span: SpanAnchor | None) -> bool:
        """Whether this metric is to score it.

        `span` is the answer's span, if an emitter has one; else the record's parent decides.
        """
        trace = span or record.parent
        if trace is not None and not trace.sampled and not self.score_unsampled:
            return False
        return _draw(f"{trace.trace_id:032x}" if trace is not None else record.record_id) < self.metric_rates.get(
            metric, self.rate
        )


def _draw(identity: str) -> float:
    """A number from 0 to below 1, always the same for the same identity.

    A hash with a key of its own, not the bits of the trace id: samplers of traces compare those to their rate. Where
    one of them keeps a tenth of the traces, a tenth taken by the same bits would be all that is left.
    """
    digest = hashlib.blake2b(identity.encode(errors="surrogatepass"), digest_size=_HASH_BYTES, key=_KEY).digest()
    return int.from_bytes(digest, "big") / (1 << 8 * _HASH_BYTES)
