"""A record as a judge sees it: passages, question and response, fitted and fenced.

Every request about a record begins with the rules and this material, byte for byte, and only then comes what it asks:
providers serve a prompt that begins like an earlier one from their cache, at a fraction of the price.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ragspan.judges.base import ChatMessage
from ragspan.judges.llm.fencing import Fence, overhead
from ragspan.judges.llm.fitting import fit
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
        max_context_chars: characters of all passages together that the case may hold, with their fences.
        max_response_chars: characters of the response that it may hold, and of the question.
    """
    quoted, left_out = _quoted(record, max_context_chars, max_response_chars)
    shown = {label: text[:most] for label, (text, most) in quoted.items()}
    passages = tuple(shown.values())[:-2]
    fence = Fence.around([record.record_id, *shown.values()])
    blocks = [fence.quote(_label(label, quoted[label][0], text), text) for label, text in shown.items()]
    return Case(
        fence=fence,
        material="\n\n".join([introduction(fence.code, len(passages)), *blocks]),
        passages=passages,
        remark=_remark(quoted, left_out),
    )


def share_shown(record: RagRecord, *, max_context_chars: int, max_response_chars: int) -> float:
    """The share of the characters of a record's texts that its case holds, 0..1."""
    quoted, left_out = _quoted(record, max_context_chars, max_response_chars)
    whole = sum(len(text) for text, _ in quoted.values()) + left_out
    return sum(min(len(text), most) for text, most in quoted.values()) / whole if whole else 1.0


def _quoted(
    record: RagRecord, max_context_chars: int, max_response_chars: int
) -> tuple[dict[str, tuple[str, int]], int]:
    """By label, each text with the characters of it that may be shown: the passages, the question, the response.

    Beside them the characters of the passages that are left out altogether, the last ones, because not even their fences fit.
    """
    texts = [context.text for context in record.contexts or ()]
    labels = [f"passage {number}" for number in range(1, len(texts) + 1)]
    kept, limit = fit([len(text) for text in texts], list(map(overhead, labels)), max_context_chars)
    quoted = {label: (text, limit) for label, text in zip(labels[:kept], texts, strict=False)}
    quoted["question"] = (record.question or "", max_response_chars)
    quoted["response"] = (record.response or "", max_response_chars)
    return quoted, sum(map(len, texts[kept:]))


def _label(label: str, whole: str, shown: str) -> str:
    return label if len(shown) == len(whole) else f"{label} (first {len(shown):,} of {len(whole):,} characters)"


def _remark(quoted: Mapping[str, tuple[str, int]], left_out: int) -> str | None:
    passages = [text for label, text in quoted.items() if label not in {"question", "response"}]
    parts = [
        f"{shown:,} of {whole:,} characters of the {what}"
        for what, texts, more in (
            ("passages", passages, left_out),
            ("question", [quoted["question"]], 0),
            ("response", [quoted["response"]], 0),
        )
        if (shown := sum(min(len(text), most) for text, most in texts))
        < (whole := sum(len(text) for text, _ in texts) + more)
    ]
    return f"the judge saw only {' and '.join(parts)}" if parts else None
