"""Languages: how their text is read as tokens and keys, and which one a text is in."""

from __future__ import annotations

from ragspan.text.languages.guessing import Languages, guess, languages_of
from ragspan.text.languages.language import ENGLISH, UNKNOWN, Language, language

__all__ = ["ENGLISH", "UNKNOWN", "Language", "Languages", "guess", "language", "languages_of"]
