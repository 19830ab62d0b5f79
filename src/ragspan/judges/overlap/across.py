"""What can be compared where a response is in another language than its contexts: numbers, and names in the same script."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ragspan.exceptions import JudgeError
from ragspan.judges.base import LANGUAGE
from ragspan.judges.overlap.claims import Claim
from ragspan.judges.overlap.contexts import Context
from ragspan.judges.overlap.grounding import Grade
from ragspan.judges.overlap.languages import Languages
from ragspan.judges.overlap.text import is_content, is_number

_ROOT = 5
"""Letters of a name that count: languages put endings to names."""


class _Sought(NamedTuple):
    word: str
    key: str
    is_number: bool


def comparable_claims(claims: Sequence[Claim], languages: Languages) -> tuple[Claim, ...]:
    """Those of the claims that have a number or a name that could be found in contexts of another language."""
    return tuple(claim for claim in claims if any(_sought(claim, languages)))


def grade_across(claims: Sequence[Claim], contexts: Sequence[Context], languages: Languages) -> list[Grade]:
    """A grade for each claim, by the share of its numbers and names that the contexts hold.

    Raises:
        JudgeError: a claim has neither (`language`).
    """
    numbers = {key for context in contexts for key in context.keys if is_number(key)}
    names = {word.lower()[:_ROOT] for context in contexts for word in context.all_words()}
    return [_grade(claim, list(_sought(claim, languages)), numbers | names, languages) for claim in claims]


def note_on(languages: Languages) -> str:
    """What a score of such a response rests on."""
    return f"only numbers and names were compared, because {_apart(languages)}"


def require_comparable(languages: Languages) -> None:
    """Raise where words have to be compared that are of different languages."""
    if not languages.are_comparable:
        raise JudgeError(LANGUAGE, f"{_apart(languages)}, and the embedded judge compares words")


def require_claims(claims: Sequence[Claim], languages: Languages) -> None:
    """Raise where no claim has anything that can be compared."""
    if not claims and not languages.are_comparable:
        raise JudgeError(LANGUAGE, f"{_apart(languages)}, and it has no numbers or names to compare")


def _apart(languages: Languages) -> str:
    return f"the response is in {languages.response.name} and the contexts are in {languages.contexts.name}"


def _grade(claim: Claim, sought: Sequence[_Sought], held: set[str], languages: Languages) -> Grade:
    if not sought:
        raise JudgeError(LANGUAGE, f"{_apart(languages)}, and a claim has no numbers or names to compare")
    missing = [one for one in sought if one.key not in held]
    return Grade(
        sentence=claim.text,
        window=1 - len(missing) / len(sought),
        context=0,
        compared="numbers and names",
        numbers=tuple(one.word for one in missing if one.is_number),
        names=tuple(one.word for one in missing if not one.is_number),
    )


def _sought(claim: Claim, languages: Languages) -> Iterator[_Sought]:
    """Numbers, and capitalised words but for the first, where the contexts are in the same script."""
    has_names = languages.response.script == languages.contexts.script and not languages.response.capitalises_nouns
    for at, (word, key) in enumerate(zip(claim.words, claim.keys, strict=True)):
        if is_number(key):
            yield _Sought(word, key, is_number=True)
        elif has_names and at and word[0].isupper() and is_content(key):
            yield _Sought(word, word.lower()[:_ROOT], is_number=False)
