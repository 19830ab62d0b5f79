"""Looks for many texts in others as they are, all at once: the time is linear in the texts and in what they are looked for in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

_SHORT = 15
"""Characters: shorter texts are looked for one by one."""
_PIECE = 16
_MAX_STEP = 16
_MAX_PIECES = 40_000
_MAX_TRIED = 100_000
_MORE_TRIED = 1000
"""Places that are looked at for each text in addition."""
_COMPARED = 500
"""Characters that are compared in the time that one more place takes."""


class Needles:
    """Texts that are looked for.

    Of what they are looked for in, only a piece after each `_step` characters is read. Of each text the pieces around its
    middle are known, each one character after the last, so that wherever it stands, one of these is read. Its beginning and
    end may be those of other texts as well.

    Args:
        texts: what is looked for.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self.texts = [text for text in dict.fromkeys(texts) if text]
        self._short = [text for text in self.texts if len(text) < _SHORT]
        shortest = min((len(text) for text in self.texts if len(text) >= _SHORT), default=_SHORT)
        self._step = max(1, min(_MAX_STEP, (shortest + 1) // 2, _MAX_PIECES // max(1, len(self.texts))))
        self._length = min(_PIECE, shortest - self._step + 1)
        self._starts = [(len(text) - self._step - self._length + 1) // 2 for text in self.texts]
        """Where the pieces of each text begin."""
        self._first: dict[str, int] = {}
        self._more: dict[str, list[int]] = {}
        self._left = _MAX_TRIED
        for number, text in enumerate(self.texts):
            self._add(text, number * self._step, self._starts[number])

    def _add(self, text: str, code: int, start: int) -> None:
        first, length = self._first, self._length
        for at in range(start, start + self._step if len(text) >= _SHORT else 0):
            piece = text[at : at + length]
            if first.setdefault(piece, code) != code:
                self._more.setdefault(piece, []).append(code)
            code += 1

    @property
    def is_exhausted(self) -> bool:
        """Not all places were looked at: the texts repeat themselves too often."""
        return self._left < 0

    def places_in(self, text: str) -> Iterator[tuple[int, str]]:
        """Where each of the texts stands, in any order."""
        self._left += _MORE_TRIED if 0 <= self._left < _MAX_TRIED else 0
        step, length, first, texts = self._step, self._length, self._first, self.texts
        for at in range(0, len(text) - length + 1, step) if first else ():
            piece = text[at : at + length]
            if piece not in first:
                continue
            for code in (first[piece], *self._more.get(piece, ())):
                number, shift = divmod(code, step)
                start, wanted = at - shift - self._starts[number], texts[number]
                self._left -= 1 + len(wanted) // _COMPARED
                if self._left < 0:
                    return
                if start >= 0 and text.startswith(wanted, start):
                    yield start, wanted
        for wanted in self._short:
            self._left -= 1 + len(text) // _COMPARED
            start = text.find(wanted) if self._left >= 0 else -1
            while start >= 0:
                self._left -= 1
                yield start, wanted
                start = text.find(wanted, start + 1) if self._left >= 0 else -1
