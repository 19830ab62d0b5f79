"""Parts of sentences in any language: what stands between commas, brackets and "and", and which words have changed parts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from itertools import combinations, islice
from operator import or_

from ragspan.judges.overlap.context_reader import Context, numbers_of
from ragspan.judges.overlap.contradictions import Contradiction
from ragspan.judges.overlap.shared_words import SharedWords
from ragspan.text.keys import content_of, is_content, is_negation, is_number
from ragspan.text.languages import Language
from ragspan.text.sentences import Sentence

_PAUSE = re.compile(r"[,;:()\[\]\"](?=\s|$)|\s[(\[\"-]{1,2}(?=\s?\S)|\.\s")
_NEAREST = 2
_ROOT = 5
_MOST_PARTS = 8
_FEWEST, _LONGEST = 6, 120
"""Words of a claim of which some may have changed parts, and of a sentence that is taken apart."""
_OURS, _THEIRS = 0.75, 0.6
"""The share of the words of two parts, in the claim and in the context, that have to be the ones that changed places."""
_OF_NUMBERS = 0.5
"""The share where two numbers did."""

_DENIED = 0.5
"""The share of a denied part's words that a claim and its question have to hold."""
_MOST_DENIALS = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """Some words of a sentence in a row."""

    text: str
    keys: tuple[str, ...]
    content: frozenset[str]
    """The keys of its content words; of other languages than English how they begin, because their stemmers leave endings."""
    counted: tuple[tuple[str, str], ...]
    """The keys of its numbers, each with that of the word after it."""


@lru_cache(maxsize=1 << 10)
def parts_of(text: str, language: Language) -> tuple[Part, ...]:
    """Those with content, the first few."""
    return tuple([part for part in _parts(text, language) if part.content][:_MOST_PARTS])


def _parts(text: str, language: Language) -> Iterator[Part]:
    is_english = language.code == "en"
    for piece in _PAUSE.split(text):
        words = language.tokens(piece)
        keys = list(map(language.key, words))
        start = 0
        for at, word in enumerate(words):
            if word.lower() in language.joins and not _is_range(keys, at):
                yield _part(words[start:at], keys[start:at], is_english=is_english)
                start = at + 1
        yield _part(words[start:], keys[start:], is_english=is_english)


def _is_range(keys: Sequence[str], at: int) -> bool:
    """True for "between 10 and 18"."""
    return 0 < at < len(keys) - 1 and is_number(keys[at - 1]) and is_number(keys[at + 1])


def _part(words: Sequence[str], keys: Sequence[str], *, is_english: bool) -> Part:
    content = filter(is_content, keys)
    counted = [pair for pair in zip(keys, (*keys[1:], ""), strict=False) if is_number(pair[0])]
    return Part(
        text=" ".join(words),
        keys=tuple(keys),
        content=frozenset(content if is_english else [key[:_ROOT] for key in content]),
        counted=tuple(counted),
    )


def find_swapped_parts(
    claim: Sentence, contexts: Sequence[Context], shared: SharedWords, language: Language
) -> Contradiction | None:
    """Two parts that have changed words: "A comes first, B last" where the context says "B comes first, A last"."""
    if len(claim.keys) < _FEWEST or not _has_parts(claim, language):
        return None
    for theirs in nearest(claim, contexts, shared, language):
        ours = parts_of(claim.read or claim.text, language)
        for one, other in combinations(ours, 2):
            if any(one.content | other.content <= held.content for held in theirs):
                continue
            for first, second in combinations(theirs, 2):
                are_turned = _is_passive(one, other) != _is_passive(first, second)
                if not are_turned and _have_swapped(one.content, other.content, first.content, second.content):
                    return Contradiction(
                        kind="order", response=f"{one.text}, {other.text}", context=f"{first.text}, {second.text}"
                    )
    return None


def _has_parts(claim: Sentence, language: Language) -> bool:
    """False where nothing parts the words of a claim."""
    return not language.joins.isdisjoint(map(str.lower, claim.words)) or bool(_PAUSE.search(claim.read or claim.text))


def _is_passive(one: Part, other: Part) -> bool:
    """Whether one of two parts names who does something after it: "sung and written by him" for "he wrote and sang it"."""
    return "by" in one.keys or "by" in other.keys


def nearest(
    claim: Sentence,
    contexts: Sequence[Context],
    shared: SharedWords,
    language: Language,
    also: frozenset[str] = frozenset(),
) -> Iterator[tuple[Part, ...]]:
    """The parts of the context sentences of prose that share most words with a claim, and with some others."""
    if len(claim.keys) > _LONGEST:
        return
    content, said = content_of(claim.keys), list(claim.keys)
    for place in shared.closest(also | content, _NEAREST, least=1 if also else max(1, (len(content) + 1) // 2)):
        context = contexts[place.context]
        keys = context.keys_of(place.sentence)
        if keys != said and len(keys) <= _LONGEST and context.prose >> place.sentence & 1:
            yield parts_of(context.text_of(place.sentence), language)


def _have_swapped(one: frozenset[str], other: frozenset[str], first: frozenset[str], second: frozenset[str]) -> bool:
    """Whether each of two parts holds words of both others, and these are most of their words."""
    if len(one & other) > 1:
        return False
    one, other, first, second = one - other, other - one, first - second, second - first
    crossed = one & first, one & second, other & first, other & second
    if not all(crossed):
        return False
    a, b, c, d = map(len, crossed)
    numbers = [any(map(is_number, words)) for words in crossed]
    are_numbers = (numbers[0] and numbers[3]) or (numbers[1] and numbers[2])
    mine, held = (_OF_NUMBERS, _OF_NUMBERS) if are_numbers else (_OURS, _THEIRS)
    return (
        a + b >= mine * len(one)
        and c + d >= mine * len(other)
        and a + c >= held * len(first)
        and b + d >= held * len(second)
    )


def find_number_of_other_part(
    claim: Sentence, contexts: Sequence[Context], shared: SharedWords, language: Language
) -> Contradiction | None:
    """A number of another part: "a reduced ticket is 9 euros" where the context says "a ticket is 9 euros, a reduced one 5"."""
    if not any(map(is_number, claim.keys)):
        return None
    for theirs in nearest(claim, contexts, shared, language):
        ours = parts_of(claim.read or claim.text, language)
        counted = frozenset(pair for part in ours for pair in part.counted)
        said = frozenset().union(*(part.content for part in ours))
        for part in ours:
            for pair in part.counted:
                found = _number_beside(pair, counted, said, theirs)
                if found is not None:
                    return Contradiction(kind="number", response=part.text, context=found.text)
    return None


def _number_beside(
    pair: tuple[str, str], counted: frozenset[tuple[str, str]], said: frozenset[str], theirs: Sequence[Part]
) -> Part | None:
    """The part beside that of a number which has another one of this unit, and words of the claim that the number's part lacks."""
    holding = [at for at, one in enumerate(theirs) if pair in one.counted]
    if len(holding) != 1:
        return None
    (at,) = holding
    own = theirs[at]
    for there_at in range(max(0, at - 1), min(len(theirs), at + 2)):
        other = theirs[there_at]
        rivals = [one for one in other.counted if one[1] == pair[1] and one not in counted]
        if not rivals or len(other.counted) != len(own.counted):
            continue
        here, there = own.content - other.content, other.content - own.content
        is_elided = there_at > at  # "a ticket is 9 euros, a reduced one 5"
        if here - said and there & said and (is_elided or here & said <= {pair[0]}):
            return other
    return None


def is_denied(
    claim: Sentence, contexts: Sequence[Context], shared: SharedWords, asked: frozenset[str], language: Language
) -> bool:
    """Whether a sentence denies what the question and a claim are about, where the claim denies nothing."""
    if len(claim.keys) > _LONGEST or any(map(is_negation, claim.keys)):
        return False
    question = _part((), tuple(asked), is_english=language.code == "en").content
    said = frozenset().union(*(part.content for part in parts_of(claim.read or claim.text, language)))
    for theirs in islice(nearest(claim, contexts, shared, language, also=asked), 1):
        if _denies_elsewhere(said, theirs):
            return True
    for context in contexts:
        denying = reduce(or_, [bits for key, bits in context.places.items() if is_negation(key)], 0) & context.prose
        for at in numbers_of(denying)[:_MOST_DENIALS]:
            if len(context.keys_of(at)) > _LONGEST:
                continue
            for part in parts_of(context.text_of(at), language):
                is_about = len(part.content & (said | question)) >= _DENIED * len(part.content)
                if is_about and not question.isdisjoint(part.content) and any(map(is_negation, part.keys)):
                    return True
    return False


def _denies_elsewhere(said: frozenset[str], theirs: Sequence[Part]) -> bool:
    """Whether a sentence has much of a claim, but a part of it denies, and no other part says what the claim does."""
    held = frozenset().union(*(part.content for part in theirs))
    if len(said & held) < _DENIED * len(said):
        return False
    denying = [any(map(is_negation, part.keys)) for part in theirs]
    return any(denying) and not any(
        len(said & part.content) >= _OURS * len(said)
        for part, denies in zip(theirs, denying, strict=True)
        if not denies
    )
