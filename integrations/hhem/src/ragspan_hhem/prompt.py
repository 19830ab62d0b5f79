"""A pair as tokens: the prompt that the model was trained with, around texts that are cut if they are too long.

The prompt's parts and the texts are tokenized one by one: the white space between them is where the tokenizer splits first. What
looks like a special token in a text (`<pad>`, `</s>`) stays text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import chain
from typing import NamedTuple

from ragspan.text.limits import fair_limit

INSTRUCTION = "Determine if the hypothesis is true given the premise?\n\nPremise:"
HYPOTHESIS = "Hypothesis:"
PAD, END = 0, 1
"""T5's tokens for padding and for the end of a text. The published prompt begins with a padding token; the model's answer is
read at its place."""

_SPECIAL = re.compile(r"<(?=(?:pad|/s|unk|extra_id_\d+)>)")
_MAX_TOKEN_CHARS = 32
"""More than the characters of any token. Text beyond that many for each token is not tokenized, which saves time."""


class Pair(NamedTuple):
    """A claim, and the contexts that it is compared with, which are read as one text."""

    contexts: tuple[str, ...]
    claim: str


class FittedPair(NamedTuple):
    """A pair as the classifier reads it."""

    tokens: tuple[int, ...]
    remark: str | None = None
    """How much of the pair is read, in words; None if all is."""


class Prompt:
    """Fits pairs into the prompt.

    The claim gets at most half of the tokens that the prompt leaves, and the contexts get the rest. Contexts that do not fit
    are cut to their beginnings, each to the same number of tokens, so that short ones stay whole.

    Args:
        tokens_of: the model's tokens of a text, without those for its beginning and end.
        max_tokens: of a whole prompt.
    """

    def __init__(self, tokens_of: Callable[[str], Sequence[int]], *, max_tokens: int) -> None:
        self._encoded = tokens_of
        self._max_chars = max_tokens * _MAX_TOKEN_CHARS
        self._before = (PAD, *self._tokens_of(INSTRUCTION))
        self._between = self._tokens_of(HYPOTHESIS)
        self._room = max_tokens - len(self._before) - len(self._between) - 1

    def fit(self, pairs: Sequence[Pair]) -> list[FittedPair]:
        """The pairs as the model reads them. A text in several pairs is tokenized once."""
        texts = dict.fromkeys(chain.from_iterable((*pair.contexts, pair.claim) for pair in pairs))
        tokens = {text: self._tokens_of(text) for text in texts}
        fitted = []
        for pair in pairs:
            claim = tokens[pair.claim][: self._room // 2]
            contexts = [tokens[context] for context in pair.contexts]
            limit = fair_limit([len(context) for context in contexts], self._room - len(claim))
            premise = [*chain.from_iterable(context[:limit] for context in contexts)]
            cut = []
            if any(len(tokens[text]) > limit or len(text) > self._max_chars for text in pair.contexts):
                cut.append(f"{len(premise):,} tokens of the contexts")
            if len(tokens[pair.claim]) > len(claim) or len(pair.claim) > self._max_chars:
                cut.append(f"{len(claim):,} tokens of the claim")
            remark = f"the classifier read only {' and '.join(cut)}" if cut else None
            fitted.append(FittedPair((*self._before, *premise, *self._between, *claim, END), remark))
        return fitted

    def _tokens_of(self, text: str) -> tuple[int, ...]:
        readable = text[: self._max_chars].encode(errors="replace").decode()  # no surrogate halves
        return tuple(self._encoded(_SPECIAL.sub("< ", readable)))
