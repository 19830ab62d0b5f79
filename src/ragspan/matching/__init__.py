"""Finds texts in the prompts that models were given; every integration uses it to decide which documents count.

Runs in the worker, and within bounds: the time is linear in the texts, whatever they hold, and no single step keeps other
threads from running for more than milliseconds. `prompt_texts` finds texts, `prompt_words` looks for words,
`normalization` undoes what formatters do to a text.
"""

from ragspan.matching.literal import occurrences
from ragspan.matching.needles import Needles
from ragspan.matching.normalization import unescaped, words_of
from ragspan.matching.prompt_texts import Match, PromptTexts
from ragspan.matching.prompt_words import PromptWords
from ragspan.matching.speech import Holders, Speech
from ragspan.matching.word_positions import Span

__all__ = [
    "Holders",
    "Match",
    "Needles",
    "PromptTexts",
    "PromptWords",
    "Span",
    "Speech",
    "occurrences",
    "unescaped",
    "words_of",
]
