"""What an answer may rest on: documents, and the background beside them. When is there enough of it to judge by?

With documents an answer is judged by these and the background together. Without them it is judged by background where

- no document reached the prompt, and the background supports a claim of the response ("You are welcome." raises no alarm);
- nothing shows which documents did, but all prompts were seen, and a tool's result of some words is in them;
- the program asks for it: `unknown_contexts="prompt"`.
"""

from __future__ import annotations

from ragspan.judges.judge_protocols import CANNOT_TELL, Judge
from ragspan.metrics.metric import screen_claims, screen_contexts, screen_response, screen_status
from ragspan.outcomes import NotApplicable
from ragspan.records import RagRecord
from ragspan.text.questions import restates

_LEAST_WORDS = 8
"""Words of a tool's result that may be what an answer rests on."""
_UNREAD = frozenset({"picture", "provider_search", "unseen_prompt", "too_much"})
"""Why contexts are unknown, where evidence is known to be missing."""


def screen_origin(record: RagRecord) -> NotApplicable | None:
    """A block, a limit or a template is not the model's answer: it makes no claims about evidence."""
    return None if record.from_model is not False else NotApplicable(reason="not_from_a_model")


def screen_evidence(record: RagRecord) -> NotApplicable | None:
    reason = screen_contexts(record)
    return None if reason is None or _may_be_judged(record) else reason


def screen_statement(record: RagRecord) -> NotApplicable | None:
    """A greeting states nothing; without documents, the reason is that there were none."""
    reason = screen_claims(record)
    return reason and (screen_contexts(record) or reason)


def _may_be_judged(record: RagRecord) -> bool:
    """Whether the background of a record without documents is evidence to judge by."""
    if not any(one.text.strip() for one in record.background):
        return False
    if record.contexts is not None or record.background_is_prompt:
        return True
    if not record.prompts_seen or record.contexts_unknown in _UNREAD:
        return False
    return any(one.kind in {"tool", "history"} and len(one.text.split()) >= _LEAST_WORDS for one in record.background)


EVIDENCE_SCREENS = (screen_status, screen_response, screen_origin, screen_evidence, screen_statement)
"""Of the metrics that judge by documents and background."""


def is_judged_anyway(record: RagRecord) -> bool:
    """Whether the background of a record without documents counts although it supports nothing."""
    return record.contexts is None or record.background_is_prompt


async def claims_of(judge: Judge, record: RagRecord) -> list[str]:
    """The claims of the response without those that only restate the question."""
    question = record.question or ""
    return [claim for claim in await judge.extract_claims(record) if not restates(claim, question)]


async def screen_background(judge: Judge, record: RagRecord) -> NotApplicable | None:
    """Ask the judge whether the background of a record without documents is what the response rests on; None if it is.

    An LLM judge is asked for nothing that faithfulness does not ask for as well.
    """
    reason = screen_contexts(record)
    if reason is None:
        return None
    claims = await claims_of(judge, record)
    if not claims:
        return reason
    if is_judged_anyway(record):
        return None
    is_supported = any(verdict.supported for verdict in await judge.verify_claims(record, claims))
    return None if is_supported else reason


def cannot_tell(unsure: int, claims: int, what: str = "claims") -> NotApplicable:
    """The claims of which the judge is not sure decide."""
    return NotApplicable(reason=CANNOT_TELL, detail=f"{unsure} of {claims} {what} could be either")
