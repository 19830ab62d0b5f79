"""A record as an LLM judge sees it, laid out once for all requests about it.

A text that is longer than its share of the room is cut to its first characters. The room is shared equally, and what short
texts leave of their shares goes to the long ones. So every context keeps its place and its number.

A quotation stands between two marker lines with a code: a keyed hash of all quoted texts, whose key never leaves the process. So
nobody can know the code, and no text can hold its own code. Requests about the same texts have the same code, so they begin with
the same bytes.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ragspan.judges.llm.asking import AskedOnce
from ragspan.judges.llm.parts import JudgedClaim
from ragspan.judges.selection import beginnings
from ragspan.records import RagRecord
from ragspan.text.limits import beginning

_SECRET = secrets.token_bytes(32)
_MAX_OTHERS = 20_000
"""Characters of the response, and of the question."""
_LINE_BREAK = re.compile(r"\r\n?|[\v\f\x85\u2028\u2029]")
_VARIATIONS = r"\ufe00-\ufe0f\U000e0100-\U000e01ef"
_INVISIBLE = re.compile(
    r"[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u2060-\u2065\u206a-\u206f\u3164\ufeff\uffa0\ufff0-\ufff8"
    r"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0080-\U000e00ff\U000e01f0-\U000e0fff]"
    # Scripts and emoji need joiners and single variation selectors; several in a row carry text that only a model sees.
    rf"|[{_VARIATIONS}]{{2,}}|(?<=[\x00-\x7f])[\u200c\u200d{_VARIATIONS}]"
)
_HARMFUL = re.compile(
    # Control characters, bidirectional marks, annotations and tags, and lone surrogates, which no encoding takes.
    r"[\x00-\x08\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufff9-\ufffb\U000e0000-\U000e007f\ud800-\udfff]"
)
_TEMPLATE_MARK = re.compile(
    r"<\|[^|<>\n]{1,40}\|>|<\uff5c[^\uff5c<>\n]{1,40}\uff5c>|<</?SYS>>|\[/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|THINK)\]"
    r"|</?(?:s|bos|eos|pad|start_of_turn|end_of_turn|unused\d{1,4}|tool_call|tool_response"
    r"|think|thinking|thought|reason|reasoning|reflection|analysis|scratchpad)>",
    re.IGNORECASE,
)
"""What chat templates and parsers of thoughts take for their own: some servers read it in quoted text as well."""
_HARMLESS = str.maketrans("<>[]", "\u2039\u203a\u27e6\u27e7")


def clean(text: str) -> str:
    """The text without characters that hide or reorder text or that cannot be sent; never longer than before.

    Line breaks of all kinds become newlines. Invisible characters that no script needs are removed. The rest becomes U+FFFD.
    Marks of chat templates, such as `<|im_start|>` and `<think>`, get other brackets.
    """
    text = _TEMPLATE_MARK.sub(lambda mark: mark[0].translate(_HARMLESS), _LINE_BREAK.sub("\n", text))
    return _HARMFUL.sub("\ufffd", text if text.isascii() else _INVISIBLE.sub("", text))


@dataclass(slots=True, kw_only=True, eq=False)
class Prompt:
    """What all requests about a record begin with, and what they share."""

    code: str
    """Of its quotations."""
    material: str = ""
    contexts: int
    """How many there are."""
    share_shown: float
    """Of the characters of the record's texts, 0..1."""
    once: AskedOnce = field(default_factory=AskedOnce)
    first: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Of the request that goes ahead of the others, so that a provider's cache has what they begin with."""
    is_cached: bool = False
    expected: Mapping[str, Any] | None = None
    """What the metrics of the record ask, by the judge's methods; None before it is known."""
    claims: dict[str, JudgedClaim] = field(default_factory=dict)
    """Those of the response, with their verdicts, once somebody has asked for them."""

    def quote(self, label: str, text: str) -> str:
        """The cleaned text between its markers, without the code, which a model that has seen it may have written into a claim."""
        shown = clean(text).replace(self.code, chr(0xFFFD))
        return f"<<<{label} {self.code}>>>\n{shown}\n<<<end of {label} {self.code}>>>"


def lay_out(record: RagRecord, max_context_chars: int) -> Prompt:
    """The record as requests show it; characters are in the sense of `size_of`, and those of marks do not count."""
    texts = [context.text for context in record.contexts or ()]
    contexts = beginnings(texts, max_context_chars)
    quoted = [(f"context {number}", *pair) for number, pair in enumerate(zip(texts, contexts, strict=True), start=1)]
    others = {"question": record.question or "", "response": record.response or ""}
    quoted += [(label, text, beginning(text, _MAX_OTHERS)) for label, text in others.items()]
    digest = hashlib.blake2b(key=_SECRET, digest_size=10)
    for text in (record.record_id, *(shown for *_, shown in quoted)):
        encoded = text.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(8, "big") + encoded)
    seen, whole = (sum(len(pair[at]) for pair in quoted) for at in (2, 1))
    prompt = Prompt(code=digest.hexdigest(), contexts=len(contexts), share_shown=seen / whole if whole else 1.0)
    material = f"The material of this case: {len(contexts)} contexts, the question and the response."
    blocks = [f"{material} The code is {prompt.code}."]
    for label, text, shown in quoted:
        part = "" if len(shown) == len(text) else f" (first {len(shown):,} of {len(text):,} characters)"
        blocks.append(prompt.quote(f"{label}{part}", shown))
    prompt.material = "\n\n".join(blocks)
    return prompt
