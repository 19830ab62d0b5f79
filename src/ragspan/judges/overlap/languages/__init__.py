"""Languages, as far as comparing words needs them: how their text is read, and which one a text is in.

language = language_of(response, contexts)
keys = language.keys(sentence)          # as overlap.text.keys does it for English
is_negation(keys[0])                    # of overlap.text, for keys of any language
"""

from __future__ import annotations

from ragspan.judges.overlap.languages.guessing import are_apart, guess, language_of
from ragspan.judges.overlap.languages.language import ENGLISH, UNKNOWN, Language, language

__all__ = ["ENGLISH", "UNKNOWN", "Language", "are_apart", "guess", "language", "language_of"]
