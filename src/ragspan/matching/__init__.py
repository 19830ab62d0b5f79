"""Finds texts in the prompts that models were given; every integration uses it to decide which documents count.

Runs in the worker, and within bounds: the time is linear in the texts, whatever they hold, and no single step keeps other
threads from running for more than milliseconds. `places` finds texts, `words` undoes what formatters do to them.
"""

from ragspan.matching.places import Match, PromptTexts, occurrences
from ragspan.matching.words import Span, WordIndex, has_words, unescaped, words_of

__all__ = ["Match", "PromptTexts", "Span", "WordIndex", "has_words", "occurrences", "unescaped", "words_of"]
