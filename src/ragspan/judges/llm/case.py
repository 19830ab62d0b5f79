"""A record as a judge sees it: passages, question and response, fitted and fenced.

Every request about a record begins with the rules and this material, byte for byte, and only then comes what it asks:
providers serve a prompt that begins like an earlier one from their cache, at a fraction of the price.
"""

from __future__ import annotations

from dataclasses import dataclass

from ragspan.judges.base import ChatMessage
from ragspan.judges.llm.fencing import Fence
from ragspan.judges.llm.fitting import fair_limit
from ragspan.judges.llm.prompts import RULES, introduction
from ragspan.records import RagRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    fence: Fence
    material: str
    remark: str | None
    """What the judge did not get to see, in words."""

    def messages(self, task: str) -> list[ChatMessage]:
        return [
            {"role": "system", "content": RULES},
            {"role": "user", "content": f"{self.material}\n\n{task}"},
        ]

    def explanation(self, reasoning: str) -> str:
        """The judge's reasoning, with the remark that part of the texts was left out."""
        return f"{reasoning} [{self.remark}]" if self.remark else reasoning


def lay_out(record: RagRecord, *, max_context_chars: int, max_response_chars: int) -> Case:
    """The case of a record.

    Args:
        record: what is to be judged.
        max_context_chars: characters of all passages together that the case may hold.
        max_response_chars: characters of the response that it may hold, and of the question.
    """
    passages = [context.text for context in record.contexts or ()]
    limit = fair_limit([len(passage) for passage in passages], max_context_chars)
    question, response = record.question or "", record.response or ""
    quoted = {f"passage {number}": (passage, limit) for number, passage in enumerate(passages, start=1)}
    quoted |= {"question": (question, max_response_chars), "response": (response, max_response_chars)}

    shown = {label: text[:most] for label, (text, most) in quoted.items()}
    fence = Fence.around([record.record_id, *shown.values()])
    blocks = [fence.quote(_label(label, quoted[label][0], text), text) for label, text in shown.items()]
    return Case(
        fence=fence,
        material="\n\n".join([introduction(fence.code, len(passages)), *blocks]),
        remark=_remark(passages, limit, response, max_response_chars),
    )


def _label(label: str, whole: str, shown: str) -> str:
    return label if len(shown) == len(whole) else f"{label} (first {len(shown):,} of {len(whole):,} characters)"


def _remark(passages: list[str], limit: int, response: str, max_response_chars: int) -> str | None:
    whole = sum(map(len, passages))
    shown = sum(min(len(passage), limit) for passage in passages)
    parts = []
    if shown < whole:
        parts.append(f"{shown:,} of {whole:,} characters of the passages")
    if max_response_chars < len(response):
        parts.append(f"{max_response_chars:,} of {len(response):,} characters of the response")
    return f"the judge saw only {' and '.join(parts)}" if parts else None
