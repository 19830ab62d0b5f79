"""What the screen looks for in each claim: the findings by which a response fails."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import groupby
from typing import Final

from ragspan.judges.screen import numbers
from ragspan.judges.screen.claims import Claim, Finding
from ragspan.judges.screen.contradictions import find_exchange, find_opposition
from ragspan.judges.screen.facts import english
from ragspan.judges.screen.flags import find_conflict
from ragspan.text.keys import content_of, is_negation, is_number
from ragspan.text.sentences import Sentence, read_sentence
from ragspan.text.vocabulary import word_set
from ragspan.turns import with_turns

_NEAREST = 2
_ROOT = 4  # letters at the beginning of a word that inflection mostly keeps
_ENOUGH = 0.75  # the share of a claim's words that a context sentence has to hold before a denial counts
YES: Final = word_set("yes yeah ja oui sí si sì sim ano tak da да так evet 是 はい 네")
_REASONS = frozenset({"since", "because", "only"})
_SOFT = word_set(
    "kostenlos kostenfrei gratis gratuit gratuite gratuits gratuita gratuito außer sauf salvo excepto tenzij"
)
"""Words that may deny or except, if one side alone has them."""
_AROUND = 3  # words before and after a denial that it may deny


def _find_flag(claim: Claim) -> Finding | None:
    flag = find_conflict(claim.facts, claim.response.flags) if claim.response.flags else None
    return Finding(kind="flag", response=flag.name, context=flag.shown) if flag else None


def _find_name(claim: Claim) -> Finding | None:
    """A name of which no part stands in a context or the question, but for words that anybody may say; or an address of mail."""
    addresses = [claim.words[at] for at in claim.missing if "@" in claim.words[at] and claim.keys[at] in claim.absent]
    if addresses:
        return Finding(kind="name", response=addresses[0], place=next(iter(claim.closest), None))
    if claim.response.language.capitalises_nouns or not any(claim.words[at][0].isupper() for at in claim.missing):
        return None
    capital = [word[0].isupper() and key in claim.content for word, key in zip(claim.words, claim.keys, strict=True)]
    for is_name, run in groupby(range(len(capital)), capital.__getitem__):
        places = list(run)
        words = claim.words[places[0] : places[-1] + 1]
        if not is_name or not places[-1] or not all(claim.keys[place] in claim.absent for place in places):
            continue
        # What begins a sentence or follows a colon, a bracket or a mark of a list may be any word.
        is_inside = re.search(rf"(?<=[\w,] ){re.escape(words[0])}\b", claim.sentence.text)
        if is_inside and not all(_is_common(word, claim) for word in words):
            return Finding(kind="name", response=" ".join(words), place=next(iter(claim.closest), None))
    return None


def _is_common(word: str, claim: Claim) -> bool:
    """Whether a word with a capital is hardly a name that has to be there: "HTTP", "Monday", or "Korean" beside "Korea"."""
    response, root = claim.response, word[:_ROOT].lower()
    known = response.language.key(word)
    months = english().months  # "Mar" may be another word, and a date may follow from one that is asked about
    if known in months and (claim.index[word[:3].lower()] or not months.isdisjoint(response.asked)):
        return True
    if word.rstrip("s").isupper() or known in english().common_names or known in english().units:
        return True
    return any(key.startswith(root) for keys in with_turns(response.index.sentences) for key in keys)


# Denials


def find_yes_beside_no(claim: Claim) -> Finding | None:
    """After a yes, a context sentence about most of what the question and the claim are about that denies."""
    asked = claim.response.asked
    if not claim.response.lone or any(map(is_negation, claim.keys)):
        return None
    about = asked | claim.content
    for place in claim.index.closest(about, _NEAREST):
        text, content = claim.index.texts[place], frozenset(claim.index.sentences[place])
        is_about = not asked.isdisjoint(content) and 2 * len(content & about) >= len(content)
        # A reason of its own, as in "Yes, since 60 is above the limit", is not what the sentence denies.
        denies = is_about and _denies(read_sentence(text, claim.response.language), about)
        if denies and _REASONS.isdisjoint(claim.keys):
            return Finding(kind="negation", response=claim.sentence.text, context=text, place=place)
    return None


# Other languages


def _find_denial_in_other_language(claim: Claim) -> Finding | None:
    """A claim that is denied on one side only beside the nearest context sentence, unless another one that is as near agrees."""
    if claim.is_english or not claim.response.lone:
        return None
    words, index = {key for key in claim.content if not is_number(key)}, claim.index
    held = {place: len(words.intersection(index.sentences[place])) for place in index.closest(words, _NEAREST)}
    near = [place for place, count in held.items() if count >= _ENOUGH * len(words)]
    sentences = [read_sentence(index.texts[place], claim.response.language) for place in near]
    if not near or not all(_is_denied_on_one_side(claim, one) for one in sentences):
        return None
    return Finding(kind="negation", response=claim.sentence.text, context=sentences[0].text, place=near[0])


def _is_denied_on_one_side(claim: Claim, sentence: Sentence) -> bool:
    """Whether one of them denies something near which it has a word of the other, and the other denies nothing."""
    ours, theirs = ({word.lower() for word in side.words} for side in (claim.sentence, sentence))
    denied, kept = (any(map(is_negation, side.keys)) for side in (claim, sentence))
    if denied == kept or not _SOFT.isdisjoint(ours ^ theirs):
        return False
    return _denies(claim.sentence, content_of(sentence.keys)) if denied else _denies(sentence, claim.content)


def _denies(sentence: Sentence, words: frozenset[str]) -> bool:
    """Whether a sentence denies something, with one of some words around the denial and no pause between them; not by a limit: "never more than"."""
    ends = [0, *sentence.pauses, len(sentence.keys)]
    for at in (at for at, word in enumerate(sentence.keys) if is_negation(word)):
        start, end = max(end for end in ends if end <= at), min(end for end in ends if end > at)
        around = sentence.keys[max(start, at - _AROUND) : min(end, at + _AROUND + 1)]
        if "than" not in sentence.keys[at:end] and not words.isdisjoint(around):
            return True
    return False


FINDERS: Final[dict[str, Callable[[Claim], Finding | None]]] = {
    "equation": numbers.find_wrong_equation,
    "flag": _find_flag,
    "other number": numbers.find_other_quantity,
    "absent number": numbers.find_absent_number,
    "limit": numbers.find_turned_limit,
    "denial": find_opposition,
    "exchange": find_exchange,
    "name": _find_name,
    "other language": _find_denial_in_other_language,
}
"""What is looked for in each claim, by the names under which `benchmarks/rules.py` switches it off."""
