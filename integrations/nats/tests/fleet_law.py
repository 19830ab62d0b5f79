"""The law of the fleet: every record ends scored, dead-lettered, or counted as dropped by the sink.

A scored record appears once with the backend, or what comes further says that it is of a later delivery. All of it has the
same ids, whoever sent it, so that a backend that knows spans by their ids shows the answer once.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

_REASON = "Ragspan-Reason"
_RECORD = "Ragspan-Record"


@dataclass(frozen=True, kw_only=True)
class Ends:
    """How records have ended."""

    scored: dict
    """The answers' spans by record, in the order in which they came."""
    dead: dict
    """The reasons of dead letters by record."""
    others: list
    """The reasons of dead letters that are none of the records."""

    @property
    def again(self):
        """The records that were exported more than once."""
        return {record for record, spans in self.scored.items() if len(spans) > 1}


def records_that_ended(records, *, stored, answers, letters, dropped=0, unmarked=False, strangers=False):
    """How the records have ended; fails where one has not ended by the law.

    Args:
        records: the ids of all that were published, or submitted to a sink.
        stored: what is left in the stream of records.
        answers: the answers' spans that the backend has taken.
        letters: the dead letters.
        dropped: how many the sink has counted as dropped.
        unmarked: whether a span may come again without saying so: a broker that was killed forgets deliveries, and an
            exporter that got no reply sends again.
        strangers: whether others may have been scored as well.
    """
    scored = defaultdict(list)
    for span in answers:
        scored[span.record].append(span)
    named = [(letter.headers.get(_RECORD, ""), letter.headers[_REASON]) for letter in letters]
    dead = {record: reason for record, reason in named if record in set(records)}

    assert not stored, f"{len(stored)} records are in the stream still"
    others = set(scored) - set(records)
    assert strangers or not others, f"nobody published {sorted(others)[:5]}"
    lost = set(records) - set(scored) - set(dead)
    assert len(lost) == dropped, (
        f"{len(lost)} are neither scored nor dead letters, {dropped} were dropped: {sorted(lost)[:5]}"
    )
    for record, spans in scored.items():
        _check_spans(record, spans, unmarked=unmarked)
    return Ends(scored=dict(scored), dead=dead, others=[reason for record, reason in named if record not in dead])


def _check_spans(record, spans, *, unmarked):
    assert all(span.scores for span in spans), f"{record} was exported without scores"
    ids = {(span.trace_id, span.span_id) for span in spans}
    assert len(ids) == 1, f"{record} was exported with several ids: {ids}"
    deliveries = [span.delivery for span in spans]
    if not unmarked:
        assert len(set(deliveries)) == len(deliveries), f"{record} was exported as delivery {deliveries}"
