"""Which texts reached one prompt, and where.

Programs rarely put a passage into a prompt as it is. They number and indent it, dump it as JSON, escape it, cut it off, or
take sentences out of it. So a text is looked for as it is first, then by its words, and then as an excerpt: by runs of
words that the prompt has in the text's own order. A place in the prompt counts for one text only, the one that covers
most of it: a short passage inside a longer one, or a heading that several share, proves nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from ragspan.matching.prompt_texts import Match, PromptTexts

_SHORT = 20
"""Texts below this length must stand between word boundaries."""
_HEAD = 64
_WINDOW = 500_000
"""Characters that are searched at once: other threads wait no longer than for one window."""
_MAX_TRIED = 20
_MAX_COMPARED = 10_000_000
"""Characters of other texts that are searched for all texts together."""


class PromptText:
    """A prompt that texts are looked for in.

    Args:
        text: the prompt.
        apart: a text in it that holds no passages, even if it quotes some: the user's own words.
    """

    def __init__(self, text: str, *, apart: str = "") -> None:
        self._text = text
        self._apart = apart
        self.is_complete = True
        """False when what was not found may be there all the same: to look further would take too long."""

    def find(self, texts: Sequence[str], *, excerpts: bool = True) -> list[Match | None]:
        """Where each text stands in the prompt, whole or, with `excerpts`, in part; equal texts share a place."""
        starts = self._all_in_order([text for text in texts if text.strip()])
        if starts is not None:
            return [Match(start=starts[text], whole=True) if text.strip() else None for text in texts]
        prompt = PromptTexts([self._text], apart=self._apart)
        found = prompt.find(texts, excerpts=excerpts)
        self.is_complete = prompt.is_complete
        return [matches[0] if matches else None for matches in found]

    def _all_in_order(self, texts: Sequence[str]) -> dict[str, int] | None:
        """The places of the texts if all are in the prompt as they are, in the same order; this is mostly so."""
        if len(self._apart) * len(texts) > _MAX_COMPARED or any(text in self._apart for text in texts):
            return None
        starts: dict[str, int] = {}
        end = 0
        for text in texts:
            start = self._place_of(text, end)
            if start is None:
                return None
            starts.setdefault(text, start)
            end = start + len(text)
        return None if _hold_one_another(texts) else starts

    def _place_of(self, text: str, start: int) -> int | None:
        """The first place of a text at or after `start`; None also where too many others begin alike."""
        head = text[:_HEAD]
        for _ in range(_MAX_TRIED):
            place = _find(self._text, head, start)
            if place < 0:
                return None
            if self._text.startswith(text, place) and not (len(text) < _SHORT and self._cuts_words(place, text)):
                return place
            start = place + 1
        return None

    def _cuts_words(self, start: int, needle: str) -> bool:
        text, end = self._text, start + len(needle)
        before = start > 0 and text[start - 1].isalnum() and text[start].isalnum()
        after = end < len(text) and text[end].isalnum() and text[end - 1].isalnum()
        return before or after


def _hold_one_another(texts: Sequence[str]) -> bool:
    """Whether a text is inside a longer one, and so may have been found in a copy of that."""
    by_length = sorted(set(texts), key=len)
    if len(texts) * sum(map(len, by_length)) > _MAX_COMPARED:
        return False
    return any(text in longer for at, text in enumerate(by_length) for longer in by_length[at + 1 :])


def _find(text: str, needle: str, start: int) -> int:
    """`text.find(needle, start)` in steps."""
    while start < len(text):
        place = text.find(needle, start, start + _WINDOW + len(needle))
        if place >= 0:
            return place
        start += _WINDOW
    return -1
