"""What the screen looks for in each claim: the findings by which a response fails."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Final

from ragspan.judges.screen.claims import Claim, Finding, Response
from ragspan.judges.screen.contradictions import find_exchange, find_opposition
from ragspan.judges.screen.facts import english
from ragspan.judges.screen.flags import find_conflict
from ragspan.judges.screen.numbers import find_absent_number, find_other_quantity, find_wrong_equation
from ragspan.text.keys import content_of, is_content, is_negation, is_number, key
from ragspan.text.sentences import Sentence, read_sentence
from ragspan.text.vocabulary import word_set
from ragspan.turns import with_turns

_COMMON_INITIALS, _LONGEST_INITIALS = 3, 6
"""Letters of initials that need not be there, as "TV", and of those that stand for a name."""
_NEAREST = 2
_ROOT = 4  # letters at the beginning of a word that inflection mostly keeps
_ENOUGH = 0.75  # the share of a claim's words that a context sentence has to hold before a denial counts
YES: Final = word_set("yes yeah ja oui sí si sì sim ano tak da да так evet 是 はい 네")
_REASONS = frozenset({"since", "because", "only"})
_AROUND = 3  # words before and after a denial that it may deny


def _find_flag(claim: Claim) -> Finding | None:
    flag = find_conflict(claim.facts, claim.response.flags) if claim.response.flags else None
    return Finding(kind="flag", response=flag.name, context=flag.shown) if flag else None


_DOMAINS = "com|org|net|io|dev|ai|app|edu|gov|eu|uk|us|de|fr|es|it|nl|ch|at|pl|example|test"  # not dotted names of code
_MAIL, _HOST = r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,5}", rf"(?:[\w-]{{1,63}}\.){{1,5}}(?:{_DOMAINS})\b"
_ADDRESS, _SIGN = re.compile(rf"(?<![\w.+-]){_MAIL}|(?<![\w@.-]){_HOST}", re.IGNORECASE), re.compile(r"[@.][\w-]")


def _find_address(claim: Claim) -> Finding | None:
    """An address that no context has, where one has another."""
    for address in _ADDRESS.findall(claim.sentence.text) if claim.absent and _SIGN.search(claim.sentence.text) else ():
        found = ((own, at) for at, text in enumerate(with_turns(claim.index.texts)) for own in _ADDRESS.findall(text))
        known = [(own, place) for own, place in found if ("@" in own) is ("@" in address)]
        is_absent = not claim.absent.isdisjoint(map(key, re.split(r"\W", address)))
        if known and is_absent and all(own.lower() != address.lower() for own, _ in known):
            return Finding(kind="name", response=address, context=known[0][0], place=known[0][1])
    return None


def _find_name(claim: Claim) -> Finding | None:
    """A name of which no part stands in a context or the question, nor its initials."""
    if claim.response.language.capitalises_nouns or not any(claim.words[at][0].isupper() for at in claim.missing):
        return None
    capital = [word[0].isupper() and key in claim.content for word, key in zip(claim.words, claim.keys, strict=True)]
    for is_name, run in groupby(range(len(capital)), capital.__getitem__):
        places = list(run)
        words = claim.words[places[0] : places[-1] + 1]
        if not is_name or not places[-1] or not all(claim.keys[place] in claim.absent for place in places):
            continue
        # What begins a sentence or follows a colon, a bracket or a mark of a list may be any word.
        if re.search(rf"(?<=[\w,] ){re.escape(words[0])}\b", claim.sentence.text) and not is_known(words, claim):
            return Finding(kind="name", response=" ".join(words), place=next(iter(claim.closest), None))
    return None


def is_known(name: Sequence[str], claim: Claim) -> bool:
    """Whether contexts have a name's initials, or they or the claim words in a row with the initials that it is."""
    if all(_is_common(word, claim.response) for word in name):
        return True
    if len(name) > 1:
        return bool(claim.index["".join(word[0] for word in name).lower()])
    if claim.keys[claim.words.index(name[0])] in english().months:
        return bool(claim.index[name[0][:3].lower()])  # "Mar", which may be another word
    word = name[0].rstrip("s")
    if not word.isupper() or not 1 < len(word) <= _LONGEST_INITIALS:
        return False
    rows = [claim.keys, *claim.index.sentences]
    return any(word.lower() in "".join([key[0] for key in row if is_content(key)]) for row in with_turns(rows))


def _is_common(word: str, response: Response) -> bool:
    """Whether a word with a capital is hardly a name that has to be there: "TV", "Monday", or "Korean" beside "Korea"."""
    if word.isupper() and len(word) <= _COMMON_INITIALS:
        return True
    known, root = response.language.key(word), word[:_ROOT].lower()
    if known in english().weekdays or known in english().units:
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
        keys = read_sentence(text, claim.response.language).keys
        denies = any(map(is_negation, keys)) and 2 * len(content & about) >= len(content)
        # A reason of its own, as in "Yes, since 60 is above the limit", is not what the sentence denies.
        if denies and not asked.isdisjoint(content) and _REASONS.isdisjoint(claim.keys):
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
    denied, kept = ([at for at, key in enumerate(side.keys) if is_negation(key)] for side in (claim, sentence))
    theirs = content_of(sentence.keys)
    if bool(denied) == bool(kept):
        return False
    denying, places, other = (claim.keys, denied, theirs) if denied else (sentence.keys, kept, claim.content)
    return any(not other.isdisjoint(denying[max(0, at - _AROUND) : at + _AROUND + 1]) for at in places)


FINDERS: Final[dict[str, Callable[[Claim], Finding | None]]] = {
    "equation": find_wrong_equation,
    "flag": _find_flag,
    "other number": find_other_quantity,
    "absent number": find_absent_number,
    "denial": find_opposition,
    "exchange": find_exchange,
    "address": _find_address,
    "name": _find_name,
    "other language": _find_denial_in_other_language,
}
"""What is looked for in each claim, by the names under which `benchmarks/rules.py` switches it off."""
