"""Finds texts in the prompts that models were given; every integration decides with it which documents count.

Runs in the worker. `prompt_text` finds texts, `normalization` undoes what formatters do to a text's spelling.
"""

from ragspan.matching.normalization import evened, word_count, words_in
from ragspan.matching.prompt_text import Match, PromptText

__all__ = ["Match", "PromptText", "evened", "word_count", "words_in"]
