"""Keeps text from documents and users inside the place where a prompt quotes it.

A quotation stands between two marker lines with a code: a keyed hash of all quoted texts, whose key never leaves the process. So
nobody can know the code, and no text can hold its own code. Requests about the same texts have the same code, so they begin with
the same bytes.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass

_SECRET = secrets.token_bytes(32)
_DIGEST = 10
_LINE_BREAK = re.compile(r"\r\n?|[\v\f\x85\u2028\u2029]")
_JOINERS = r"\u200c\u200d"
_VARIATIONS = r"\ufe00-\ufe0f\U000e0100-\U000e01ef"
_INVISIBLE = (
    r"\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200d\u2060-\u2065\u206a-\u206f\u3164\ufe00-\ufe0f"
    r"\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0080-\U000e0fff"
)
"""Zero-width characters, fillers and variation selectors."""
_SEEN = rf"[^\x00-\x7f{_INVISIBLE}]"
_HIDING = re.compile(
    # What scripts and emoji need stays: a variation selector after a visible character, a joiner between two of them.
    rf"(?<={_SEEN})([{_VARIATIONS}]?[{_JOINERS}](?={_SEEN})|[{_VARIATIONS}](?![{_INVISIBLE}]))|[{_INVISIBLE}]"
)
"""Characters that could hide a marker, imitate one, or carry text that only a model sees."""
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
    return _HARMFUL.sub("\ufffd", text if text.isascii() else _HIDING.sub(r"\1", text))


@dataclass(frozen=True, slots=True)
class Fence:
    """Quotes texts between marker lines with one code."""

    code: str

    @classmethod
    def around(cls, texts: Iterable[str]) -> Fence:
        """A fence that none of `texts` can hold."""
        digest = hashlib.blake2b(key=_SECRET, digest_size=_DIGEST)
        for text in texts:
            encoded = text.encode("utf-8", "surrogatepass")
            digest.update(len(encoded).to_bytes(8, "big") + encoded)
        return cls(digest.hexdigest())

    def quote(self, label: str, text: str) -> str:
        """The cleaned text between its markers, without the code, which a model that has seen it may have written into a claim."""
        body = clean(text).replace(self.code, "\ufffd")
        return f"<<<{label} {self.code}>>>\n{body}\n<<<end of {label} {self.code}>>>"


def overhead(label: str) -> int:
    """The characters that a quotation takes besides its text, with the blank line after it."""
    return len(Fence("0" * 2 * _DIGEST).quote(label, "")) + 2
