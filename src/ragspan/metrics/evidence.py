"""What an answer may rest on, documents and the background beside them: is there enough to judge by, and where was support lost?

With documents an answer is judged by these and the background together. Without them it is judged by background where

- no document reached the prompt, and the background supports a claim of the response ("You are welcome." raises no alarm);
- nothing shows which documents did, but all prompts were seen, and a tool's result of some words is in them;
- the program asks for it: `unknown_contexts="prompt"`.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ragspan.exceptions import JudgeError
from ragspan.judges.judge_protocols import CANNOT_TELL, ClaimVerdict, Named
from ragspan.matching import PromptTexts
from ragspan.metrics.metric import JudgedMetric, screen_claims, screen_contexts, screen_response, screen_status
from ragspan.outcomes import Cause, NotApplicable, Outcome, Score
from ragspan.records import RagRecord, RetrievedContext

_LEAST_WORDS = 8
"""Words of a tool's result that may be what an answer rests on."""
_SHOWN = 5
_UNREAD = frozenset({"picture", "provider_search", "unseen_prompt", "too_much"})
"""Why contexts are unknown, where evidence is known to be missing."""
_MOST = 100
"""Documents that are looked at. If there are more, a claim that none of them supports has no cause."""
_LEAST_PART = 20
"""Characters that a context needs to be a part of the document that has its words; fewer may be in any document."""
_LONGEST_WAIT = 20.0
"""Seconds that a score may wait for its causes."""


def screen_evidence(record: RagRecord) -> NotApplicable | None:
    """Why there is nothing to judge by: a block, a limit or a template is not the model's answer, or there is no evidence."""
    if record.from_model is False:
        return NotApplicable(reason="not_from_a_model")
    reason = screen_contexts(record)
    if reason is not None and any(one.text.strip() for one in record.background):
        if record.contexts is not None or record.background_is_prompt:
            reason = None
        elif record.prompts_seen and record.contexts_unknown not in _UNREAD:
            told = (one.text.split() for one in record.background if one.kind in {"tool", "history"})
            reason = None if any(len(words) >= _LEAST_WORDS for words in told) else reason
    # A greeting states nothing; without documents, the reason is that there were none.
    states_nothing = None if reason else screen_claims(record)
    return reason or (states_nothing and (screen_contexts(record) or states_nothing))


EVIDENCE_SCREENS = (screen_status, screen_response, screen_evidence)
"""Of the metrics that judge by documents and background."""


def is_judged_anyway(record: RagRecord) -> bool:
    """Whether the background of a record without documents counts although it supports nothing."""
    return record.contexts is None or record.background_is_prompt


def scored_share(
    metric: JudgedMetric[Any],
    record: RagRecord,
    verdicts: Sequence[ClaimVerdict],
    *,
    what: str,
    names: Sequence[str],
    verifier: Named | None = None,
) -> Outcome:
    """The score supported / (supported + unsupported) of claims or citations; what the judge is not sure of counts with its probability.

    `names` say in the explanation what each verdict is about. So all have an order, but the score has no label where what the judge is not sure of decides. If that has no probability, the
    judge cannot tell.
    """
    counts = Counter(one.verdict for one in verdicts)
    unsure = counts["unsure"]
    worst, best = ((counts["supported"] + more) / len(verdicts) for more in (0, unsure))
    is_open = unsure == len(verdicts) or worst < metric.threshold <= best
    if is_open and any(one.verdict == "unsure" and one.probability is None for one in verdicts):
        return NotApplicable(reason=CANNOT_TELL, detail=f"{unsure} of {len(verdicts)} {what} could be supported or not")
    told = {"supported": 1.0, "unsupported": 0.0}
    counted = [value for one in verdicts if (value := told.get(one.verdict, one.probability)) is not None]
    return metric.scored(
        record,
        math.fsum(counted) / len(counted),
        explanation=_explanation(verdicts, names, what),
        evidence=verdicts,
        details={what: len(verdicts), "unsure": unsure},
        label=None if is_open else "pass" if worst >= metric.threshold else "fail",
        verifier=verifier,
    )


def compared(verdict: ClaimVerdict) -> str:
    """In brackets, from a judge that computes probabilities: it says what it compared in a few words."""
    return f" ({verdict.explanation})" if verdict.probability is not None and verdict.explanation else ""


def _explanation(verdicts: Sequence[ClaimVerdict], names: Sequence[str], what: str) -> str:
    wrong = [name for name, one in zip(names, verdicts, strict=True) if one.verdict == "unsupported"]
    unsure = [one for one in verdicts if one.verdict == "unsure"]
    if wrong:
        more = [f"and {len(wrong) - _SHOWN} more"] if len(wrong) > _SHOWN else []
        return f"{len(wrong)} of {len(verdicts)} {what} unsupported: {'; '.join([*wrong[:_SHOWN], *more])}"
    if unsure:
        return f"{len(unsure)} of {len(verdicts)} {what} could be supported or not{compared(unsure[0])}."
    weakest = min(verdicts, key=lambda one: math.inf if one.probability is None else one.probability)
    return f"No unsupported {what.removesuffix('s')} was found ({len(verdicts)} compared){compared(weakest)}."


# Where support was lost -------------------------------------------------------------------------------------------------


async def with_causes(score: Score, record: RagRecord, claims: Sequence[str] | None) -> Score:
    """The score, with its causes and with what was lost in its explanation, where it fails and its searches are known.

    If everything that was retrieved reached the prompt whole, no judge is asked. Else the embedded judge reads the documents in this
    process: what the program masked or cut before the prompt stands in the results of its searches. `claims` are those that the
    contexts do not support; None if the metric takes no claims apart.
    """
    if score.label != "fail" or record.contexts is None or not (record.retrievals or record.rerankings):
        return score
    unseen = unseen_documents(record)
    if not unseen:
        return replace(score, causes=tuple(Cause(kind="unsupported", claim=claim) for claim in claims or (None,)))
    from ragspan.judges.screen import OverlapJudge

    texts = [text for text, _ in unseen[:_MOST]]
    try:
        found = await asyncio.wait_for(OverlapJudge().find_support(record, claims, texts), _LONGEST_WAIT)
    except (JudgeError, asyncio.TimeoutError):
        found = []
    causes = []
    for claim, document in found:
        if document is not None:
            causes.append(replace(unseen[document][1], claim=claim))
        elif len(unseen) <= _MOST:
            causes.append(Cause(kind="unsupported", claim=claim))
    scored = replace(score, causes=tuple(causes))
    return replace(scored, explanation=" ".join(filter(None, [scored.losses, scored.explanation])) or None)


def unseen_documents(record: RagRecord) -> list[tuple[str, Cause]]:
    """The texts of searches and rerankings that no model read whole, each once with how it was lost; dropped documents come first.

    What stands in any prompt of the request, or in its background, was read: also where its words did not become the answer, as in a
    summariser's. A place counts only once: what a context covers is not a part of a document that overlaps with it.
    """
    contexts = [context for context in record.contexts or () if context.text.strip()]
    everything = "\n".join(_plain(context.text) for context in contexts)
    # What cuts a text often says so.
    shown = {_plain(context.text).removesuffix("...").removesuffix("…").rstrip(): context for context in contexts}
    found: dict[str, tuple[str, Cause]] = {}
    retrieved: list[tuple[str | None, int, RetrievedContext]]
    retrieved = [(one.name, *each) for one in record.retrievals for each in enumerate(one.contexts, start=1)]
    retrieved += [(None, *each) for one in record.rerankings for each in enumerate(one.given, start=1)]
    for search, place, document in retrieved:
        text = _plain(document.text)
        if not text or text in found or text in everything:
            continue
        # A context is a part of it by the same id or, where one has none, by its words.
        parts = {
            part: context
            for part, context in shown.items()
            if (context.id == document.id if context.id and document.id else len(part) >= _LEAST_PART and part in text)
        }
        if parts and not any(context.truncated or len(part) < len(text) for part, context in parts.items()):
            continue  # a step rewrote it
        lost = Cause(kind="lost_before_prompt", document=place, search=search, step=_dropped_by(record, document))
        found[text] = document.text, replace(lost, kind="cut", step=None) if parts else lost
    prompts = [message.text for model in record.generations for message in model.prompt]
    seen = PromptTexts(list(dict.fromkeys([*prompts, *(one.text for one in record.background)])))
    matches = seen.find([*(one.text for one in contexts), *(text for text, _ in found.values())])[len(contexts) :]
    unread = [
        (text, replace(lost, kind="cut", step=None) if places else lost)
        for (text, lost), places in zip(found.values(), matches, strict=True)
        if not any(place.whole for place in places)
    ]
    return sorted(unread, key=lambda one: one[1].kind == "cut")


def _dropped_by(record: RagRecord, document: RetrievedContext) -> str | None:
    """The first reranker that was given the document and did not hand it on."""

    def is_among(others: Sequence[RetrievedContext]) -> bool:
        return any(one.id == document.id if one.id and document.id else one.text == document.text for one in others)

    steps = sorted(record.rerankings, key=lambda step: step.started_ns)
    return next((step.name for step in steps if is_among(step.given) and not is_among(step.contexts)), None)


def _plain(text: str) -> str:
    return " ".join(text.split())
