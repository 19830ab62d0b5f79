"""Languages: how their text is read as tokens and keys, and which one a text is in.

language = languages_of(response, contexts).response
keys = language.keys(sentence)
"""

from __future__ import annotations

from ragspan.text.languages.guessing import Languages, guess, languages_of
from ragspan.text.languages.language import ENGLISH, UNKNOWN, Language, characters_read, language

__all__ = ["ENGLISH", "UNKNOWN", "Language", "Languages", "characters_read", "guess", "language", "languages_of"]
