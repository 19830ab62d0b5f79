"""The claim map: which sentence of the response has which verdict, and which sentences of contexts say the same."""

from __future__ import annotations

import json
from typing import Any

from ragspan.judges.base import ClaimVerdict
from ragspan.judges.claim_places import ContextPlace, locate
from ragspan.outcomes import Score
from ragspan.records import RagRecord
from ragspan.telemetry.content import ContentPolicy
from ragspan.telemetry.values import MAX_TEXT_CHARS, bounded, named

_MOST = 50
_CLAIM_CHARS = 200


def claim_map(record: RagRecord, score: Score, content: ContentPolicy) -> str | None:
    """The verdicts on claims as JSON, with places in characters; None without claims, and where they may not be shown.

    As many of the first claims as fit.
    """
    verdicts = [one for one in score.evidence if isinstance(one, ClaimVerdict)][:_MOST]
    if not verdicts or not content.allows("spans", hidden_as="outputs"):
        return None
    contexts = record.contexts or ()
    claims = [verdict.claim or "" for verdict in verdicts]
    places = locate(claims, record.response or "", [context.text for context in contexts])
    told = []
    for verdict, place in zip(verdicts, places, strict=True):
        one: dict[str, Any] = {"claim": bounded(verdict.claim or "", _CLAIM_CHARS), "supported": verdict.supported}
        if verdict.probability is not None:
            one["probability"] = round(verdict.probability, 3)
        if place.response is not None:
            one["response"] = list(place.response)
        if verdict.supported:
            one["contexts"] = [_support(record, support) for support in place.contexts]
        told.append(one)
    while len(text := json.dumps(told)) > MAX_TEXT_CHARS:  # cut by the bound on text, it would be no JSON
        told = told[: len(told) * MAX_TEXT_CHARS // len(text)]
    return text


def _support(record: RagRecord, place: ContextPlace) -> dict[str, Any]:
    own_id = (record.contexts or ())[place.context].id
    return {**place._asdict(), **({} if own_id is None else {"id": named(own_id)})}
