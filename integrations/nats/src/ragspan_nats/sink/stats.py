"""What a sink tells about itself: counts at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ragspan.engine.stats import EngineStats


@dataclass(frozen=True, kw_only=True, slots=True)
class SinkStats:
    """Where every submitted capture is, at one moment.

    `submitted == queued + in_flight + finished + sum(dropped.values())` holds in each of them.
    """

    submitted: int = 0
    queued: int = 0
    in_flight: int = 0
    """Taken up, and not acknowledged by the stream; while the broker is away these wait as well."""
    finished: int = 0
    """`published + nothing_to_publish`."""
    published: int = 0
    """Records that the stream has; also those that it had already."""
    nothing_to_publish: int = 0
    """Captures that turned out to be no answered request."""
    dropped: Mapping[str, int]
    """By `ragspan.engine.DropReason`; reasons that did not occur are left out."""
    errors: Mapping[str, int]
    """What went wrong without losing a record, by place: `publish` (no acknowledgement came, or a refusal; it is tried
    again), `worker`; and what others report to `count_error`, such as `callback`."""

    @classmethod
    def of(cls, counts: EngineStats) -> SinkStats:
        """The same counts in a sink's words: for its ledger, to be published is to be scored."""
        return cls(
            submitted=counts.submitted,
            queued=counts.queued,
            in_flight=counts.in_flight,
            finished=counts.finished,
            published=counts.scored,
            nothing_to_publish=counts.nothing_to_score,
            dropped=counts.dropped,
            errors=counts.errors,
        )
