"""A record as a judge sees it: passages, question and response, fitted and fenced.

Every request about a record begins with the rules and this material, byte for byte, and only then comes what it asks:
providers serve a prompt that begins like an earlier one from their cache, at a fraction of the price.
"""

from __future__ import annotations

from collections.abc import Mapping
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
    passages: tuple[str, ...]
    """What of each passage is shown."""
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
    quoted = _quoted(record, max_context_chars, max_response_chars)
    shown = {label: text[:most] for label, (text, most) in quoted.items()}
    passages = tuple(shown.values())[:-2]
    fence = Fence.around([record.record_id, *shown.values()])
    blocks = [fence.quote(_label(label, quoted[label][0], text), text) for label, text in shown.items()]
    return Case(
        fence=fence,
        material="\n\n".join([introduction(fence.code, len(passages)), *blocks]),
        passages=passages,
        remark=_remark(quoted),
    )


def share_shown(record: RagRecord, *, max_context_chars: int, max_response_chars: int) -> float:
    """The share of the characters of a record's texts that its case holds, 0..1."""
    quoted = _quoted(record, max_context_chars, max_response_chars).values()
    whole = sum(len(text) for text, _ in quoted)
    return sum(min(len(text), most) for text, most in quoted) / whole if whole else 1.0


def _quoted(record: RagRecord, max_context_chars: int, max_response_chars: int) -> dict[str, tuple[str, int]]:
    """By label, each text with the characters of it that may be shown: the passages, the question, the response."""
    passages = [context.text for context in record.contexts or ()]
    limit = fair_limit([len(passage) for passage in passages], max_context_chars)
    quoted = {f"passage {number}": (passage, limit) for number, passage in enumerate(passages, start=1)}
    return quoted | {
        "question": (record.question or "", max_response_chars),
        "response": (record.response or "", max_response_chars),
    }


def _label(label: str, whole: str, shown: str) -> str:
    return label if len(shown) == len(whole) else f"{label} (first {len(shown):,} of {len(whole):,} characters)"


def _remark(quoted: Mapping[str, tuple[str, int]]) -> str | None:
    passages = [text for label, text in quoted.items() if label not in {"question", "response"}]
    parts = [
        f"{shown:,} of {whole:,} characters of the {what}"
        for what, texts in (
            ("passages", passages),
            ("question", [quoted["question"]]),
            ("response", [quoted["response"]]),
        )
        if (shown := sum(min(len(text), most) for text, most in texts)) < (whole := sum(len(text) for text, _ in texts))
    ]
    return f"the judge saw only {' and '.join(parts)}" if parts else None
