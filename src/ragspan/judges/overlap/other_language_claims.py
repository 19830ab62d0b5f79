"""Claims in another language than the contexts: of them, numbers and names can be compared, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ragspan.exceptions import JudgeError
from ragspan.judges.judge_protocols import LANGUAGE
from ragspan.judges.overlap.context_reader import Context
from ragspan.judges.overlap.grounding import Grade
from ragspan.text.keys import is_content, is_number
from ragspan.text.languages import Languages
from ragspan.text.sentences import Sentence

_NAME = 5
"""Letters of a name that are compared across languages, because languages put endings to names."""


def comparable_claims(claims: Sequence[Sentence], languages: Languages) -> tuple[Sentence, ...]:
    """The claims with a number or a name that contexts in another language could hold."""
    return tuple(claim for claim in claims if any(_numbers_and_names(claim, languages)))


def grade_across(claims: Sequence[Sentence], contexts: Sequence[Context], languages: Languages) -> list[Grade]:
    """A grade for each claim in another language than the contexts: the share of its numbers and names that they hold.

    Raises:
        JudgeError: a claim has neither (`language`).
    """
    numbers = {key for context in contexts for key in context.keys if is_number(key)}
    names = {word.lower()[:_NAME] for context in contexts for word in context.all_words()}
    return [_grade_across(claim, numbers | names, languages) for claim in claims]


def _grade_across(claim: Sentence, held: set[str], languages: Languages) -> Grade:
    sought = list(_numbers_and_names(claim, languages))
    if not sought:
        raise JudgeError(LANGUAGE, f"{languages.apart}, and a claim has no numbers or names to compare")
    missing = [(word, key) for word, key in sought if key not in held]
    return Grade(
        sentence=claim.text,
        window=1 - len(missing) / len(sought),
        context=0,
        compared="numbers and names",
        numbers=tuple(word for word, key in missing if is_number(key)),
        names=tuple(word for word, key in missing if not is_number(key)),
    )


def _numbers_and_names(claim: Sentence, languages: Languages) -> Iterator[tuple[str, str]]:
    """Numbers with their keys, and names with their roots: capitalised words but the first, if the scripts are the same."""
    has_names = languages.response.script == languages.contexts.script and not languages.response.capitalises_nouns
    for at, (word, key) in enumerate(zip(claim.words, claim.keys, strict=True)):
        if is_number(key):
            yield word, key
        elif has_names and at and word[0].isupper() and is_content(key):
            yield word, word.lower()[:_NAME]
