"""The claims of a response, and whether it is a refusal: whether a refusal is good depends on the contexts."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice

from ragspan.text.answers import stated
from ragspan.text.keys import is_content, readable
from ragspan.text.languages import ENGLISH, WITH_WORDS, Language, guess
from ragspan.text.languages import language as language_of
from ragspan.text.limits import characters_read
from ragspan.text.refusals import may_refuse, refuses
from ragspan.text.sentences import Sentence, read_sentence, split_sentences

MAX_CHARACTERS = 30_000  # characters of a response that are read
MAX_CLAIMS = 400  # sentences of a response that are scored, the first ones
MAX_REFUSAL = 4_000  # characters of a response that are searched for a refusal
_SHORT = 100  # characters of a response below which its language is no more than a guess

_GAP = re.compile(r"[^\S\n]{2,}|[^\S\n ]")
_SPACE_BEFORE_STOP = re.compile(r" +([.,;:!?])(?=\s|$)")


def read_claims(response: str, language: Language = ENGLISH) -> tuple[Sentence, ...]:
    """The sentences with content of what a response states; a row of a table is a sentence."""
    said = _tidy(readable(stated(response[: characters_read([response], MAX_CHARACTERS)[0]])))
    sentences = (read_sentence(line.lstrip(",;: "), language) for line in split_sentences(said, language))
    return tuple(islice((sentence for sentence in sentences if any(map(is_content, sentence.keys))), MAX_CLAIMS))


def _tidy(said: str) -> str:
    """What an answer states without the gaps that left-out parts leave, which may hide where a sentence ends: "U.S [1]. and"."""
    return _SPACE_BEFORE_STOP.sub(r"\1", _GAP.sub(" ", said)) if "  " in said or not said.isprintable() else said


def is_refusal(response: str) -> bool:
    """True when at least half of the sentences say that the answer is not known or not in the contexts.

    So a full answer that a stock phrase closes is not one. Never raises, and reads the first `MAX_REFUSAL` characters.
    """
    refusing, sentences = _counted(response[:MAX_REFUSAL])
    return 2 * refusing >= max(1, sentences)


def declines(response: str) -> bool:
    """True when all of the sentences say so: the response states nothing else."""
    refusing, sentences = _counted(response[:MAX_REFUSAL])
    return refusing == sentences > 0


@lru_cache(maxsize=16)  # all metrics of a record ask, one after the other
def _counted(response: str) -> tuple[int, int]:
    """How many sentences refuse, and how many there are."""
    guessed = guess(response, enough=1)
    language, text = guessed or ENGLISH, readable(response)
    if guessed is not None and guessed.code == "en" and not may_refuse(text):
        return 0, 1
    spoken = [language]
    if len(response) < _SHORT and (guessed is None or guessed.code != "en"):
        spoken += map(language_of, WITH_WORDS)  # a few words do not show their language: "Je ne sais pas."
    sentences = list(split_sentences(_tidy(readable(stated(response))), language))
    return sum(any(refuses(line, one) for one in spoken) for line in sentences), len(sentences)
