"""A record as an LLM judge sees it, laid out once for all requests about it.

A text that is longer than its share of the room is cut to its first characters. The room is shared equally, and what short
texts leave of their shares goes to the long ones. So every context keeps its place and its number, short ones stay whole, and
long ones do not crowd out the others. If there are so many contexts that not even a few words of each fit, the last ones are
left out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from ragspan.judges.llm.asking import AskedOnce
from ragspan.judges.llm.fencing import Fence, overhead
from ragspan.records import RagRecord
from ragspan.text.limits import beginning, beginnings, size_of
from ragspan.text.sentences import places_of

_CUT = 80
"""Characters by which the labels of a context grow if it is cut."""
_FEW_WORDS = 100
"""Characters that are shown of each context, if it has that many."""
_MAX_SENTENCES = 100
"""Of one context; beyond that, neighbours count as one."""
_BEGINNING = 48
"""The size of a sentence's beginning, by which it can be found in its context."""
_LONGEST_LINE = _BEGINNING + 16
"""Characters of a sentence's line in the list, its number included."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Prompt:
    """What all requests about a record begin with, and what they share."""

    fence: Fence
    material: str
    contexts: tuple[str, ...]
    """The part of each context that is shown."""
    remark: str
    """How much the judge saw, in words that follow its reasoning; empty if it saw everything."""
    share_shown: float
    """Of the characters of the record's texts, 0..1."""
    once: AskedOnce = field(default_factory=AskedOnce)
    first: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Of the request that goes ahead of the others, so that a provider's cache has what they begin with."""
    is_cached: asyncio.Event = field(default_factory=asyncio.Event)


def lay_out(record: RagRecord, *, max_context_chars: int, max_response_chars: int) -> Prompt:
    """The record as requests show it; the characters of all contexts, with their fences, are in the sense of `size_of`."""
    texts = [context.text for context in record.contexts or ()]
    contexts, each = texts, overhead(f"context {len(texts)}")
    if sum(map(size_of, texts)) + each * len(texts) > max_context_chars:
        each += _CUT
        kept = texts[: max(max_context_chars // (each + _FEW_WORDS), 1)]
        contexts = beginnings(kept, max(max_context_chars - each * len(kept), 0))
    quoted = [(f"context {number}", *pair) for number, pair in enumerate(zip(texts, contexts, strict=False), start=1)]
    others = {"question": record.question or "", "response": record.response or ""}
    quoted += [(label, text, beginning(text, max_response_chars)) for label, text in others.items()]
    fence = Fence.around([record.record_id, *(shown for *_, shown in quoted)])
    blocks = [
        f"The material of this case: {len(contexts)} contexts, the question and the response. The code is {fence.code}."
    ]
    for label, text, shown in quoted:
        part = "" if len(shown) == len(text) else f" (first {len(shown):,} of {len(text):,} characters)"
        blocks.append(fence.quote(f"{label}{part}", shown))
    counts = {"contexts": (sum(map(len, contexts)), sum(map(len, texts)))}
    counts |= {label: (len(shown), len(text)) for label, text, shown in quoted[len(contexts) :]}
    cut = [f"{seen:,} of {whole:,} characters of the {what}" for what, (seen, whole) in counts.items() if seen < whole]
    seen, whole = map(sum, zip(*counts.values(), strict=True))
    return Prompt(
        fence=fence,
        material="\n\n".join(blocks),
        contexts=tuple(contexts),
        remark=f" [the judge saw only {' and '.join(cut)}]" if cut else "",
        share_shown=seen / whole if whole else 1.0,
    )


def split_contexts(texts: Sequence[str], room: int) -> list[list[str]]:
    """The sentences of each text, so many that their list fits into the room."""
    return [split_context(text, max(room // (_LONGEST_LINE * max(len(texts), 1)), 1)) for text in texts]


def split_context(text: str, most: int) -> list[str]:
    """The sentences of a text, with the white space between them, so that they join to the whole text; none if it is blank."""
    starts = [start for start, _ in places_of(text)]
    pieces = [text[start:end] for start, end in pairwise([0, *starts[1:], len(text)])] if text.strip() else []
    at_a_time = -(-len(pieces) // min(most, _MAX_SENTENCES)) or 1
    return ["".join(pieces[at : at + at_a_time]) for at in range(0, len(pieces), at_a_time)]


def list_sentences(contexts: Sequence[Sequence[str]]) -> str:
    """A line for each sentence: the number of the context, the number of the sentence, both from 1, and its beginning."""
    lines = []
    for number, sentences in enumerate(contexts, start=1):
        for place, sentence in enumerate(sentences, start=1):
            words = " ".join(sentence.split())
            shown = beginning(words, _BEGINNING)
            lines.append(f"{number}.{place} {words if shown == words else f'{shown.rstrip()}...'}")
    return "\n".join(lines)


def used_share(sentences: Sequence[str], used: Sequence[int]) -> float:
    """The share of the text's characters in these sentences, numbered from 1; 0 if there is no text."""
    whole = sum(map(len, sentences))
    return sum(len(sentences[place - 1]) for place in set(used)) / whole if whole else 0.0
