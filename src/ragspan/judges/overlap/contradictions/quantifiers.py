"""How many, how often, how surely: "all" for "most", "may" for "must", "at least" for "at most"."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ragspan.judges.overlap.contradictions import Contradiction
from ragspan.judges.overlap.contradictions.alignment import Aligned
from ragspan.judges.overlap.contradictions.facts import Clause, SentenceFacts
from ragspan.judges.overlap.contradictions.quantities import Quantity, same
from ragspan.judges.overlap.english import english

_ENOUGH = 0.65
_REACH = 3
_DENIED = 3
"""Words before a limit among which a denial turns it: "do not take more than"."""

_APART = frozenset(
    map(frozenset, ({"must", "optional"}, {"must", "may"}, {"will", "may"}, {"forbidden", "may"}, {"forbidden", "can"}))
)
"""Duties that exclude each other."""
_LIMITING = frozenset({"only", "above", "below", "over", "under", "except", "unless", "if"})
_LIKE = frozenset(map(frozenset, ({"some", "most"}, {"some", "few"}, {"some", "half"})))


def find_other_quantifier(claim: SentenceFacts, aligned: Sequence[Aligned]) -> Contradiction | None:
    """The first bound, quantifier or modal verb of the claim in whose place the best sentences have another."""
    for one in aligned:
        if one.share < _ENOUGH or one.share < 0.8 * aligned[0].share:
            continue
        found = _other_bound(claim, one.facts) or _other_amount(claim, one.facts) or _other_duty(claim, one.facts)
        if found is not None:
            return found
    return None


def _other_bound(claim: SentenceFacts, facts: SentenceFacts) -> Contradiction | None:
    for ours in claim.quantities:
        bound, words = _bound(claim, ours)
        for theirs in facts.quantities if bound else ():
            other, context = _bound(facts, theirs)
            if other and other != bound and same(ours, theirs):
                return Contradiction(
                    kind="quantifier", response=f"{words} {ours.text}", context=f"{context} {theirs.text}"
                )
    return None


def _bound(facts: SentenceFacts, quantity: Quantity) -> tuple[str, str]:
    """The direction of the limit before a number, `>` or `<`, and its words."""
    before = [word.lower() for word in facts.words[max(0, quantity.at - 4) : quantity.at]]
    for length in (4, 3, 2, 1):
        words = " ".join(before[-length:])
        if words == "from" and facts.keys[quantity.end : quantity.end + 1] not in (("to",), ("until",)):
            return ">", words
        if words in english().limits and length <= len(before):
            start = quantity.at - length
            denied = not english().negations.isdisjoint(facts.keys[max(0, start - _DENIED) : start])
            return {">": "<", "<": ">"}[english().limits[words]] if denied else english().limits[words], words
    return "", ""


def _other_amount(claim: SentenceFacts, facts: SentenceFacts) -> Contradiction | None:
    if "than" in claim.keys and "than" in facts.keys:
        return None
    theirs = list(_amounts(facts))
    for amount, word, about in _amounts(claim):
        most = max((len(about & subject) for _, _, subject in theirs), default=0)
        best = [(other, context) for other, context, subject in theirs if most and len(about & subject) == most]
        if best and not any(_agree(amount, other) for other, _ in best):
            return Contradiction(kind="quantifier", response=word, context=best[0][1])
        limits = [at for at, limit in enumerate(facts.keys) if limit in _LIMITING and limit not in claim.keys]
        if amount == "all" and not most and limits and about & facts.content:
            context = " ".join(facts.words[limits[0] : limits[0] + 4])
            return Contradiction(kind="quantifier", response=word, context=context)
    return None


def _agree(amount: str, other: str) -> bool:
    compares = {amount, other} & {"more", "less"}
    return amount == other or frozenset({amount, other}) in _LIKE or len(compares) == 1


def _amounts(facts: SentenceFacts) -> Iterator[tuple[str, str, frozenset[str]]]:
    """Each word for an amount, as it is written, with the content words after it; "never" speaks of the whole clause."""
    amounts = english().amounts
    for at, word in enumerate(facts.keys):
        amount = amounts.get(word)
        if amount is None or (word == "most" and facts.keys[at - 1 : at] == ("at",)):
            continue
        about = frozenset(key for key in facts.keys[at + 1 : at + 1 + _REACH + 2] if key in facts.content)
        if word in {"no", "neither"} and facts.keys[at + 1 : at + 2] in (("more",), ("longer",)):
            continue
        shown = " ".join(facts.words[at : at + 3])
        yield amount, shown, about


def _other_duty(claim: SentenceFacts, facts: SentenceFacts) -> Contradiction | None:
    for clause in claim.clauses:
        duty, word = _duty(claim, clause)
        if not duty or clause.supposed:
            continue
        best = max(
            facts.clauses,
            key=lambda other: len(clause.own & (other.own | other.inherited)) + 0.5 * len(clause.own & other.own),
        )
        if best.supposed or not _is_about_same(clause, best):
            continue
        if "only" in facts.keys[best.start : best.end]:  # who alone can has to be one who can
            continue
        other, context = _duty(facts, best)
        if frozenset({duty, other}) in _APART or (duty, other) == ("must", "can"):
            return Contradiction(kind="modality", response=word, context=context)
    return None


def _is_about_same(clause: Clause, other: Clause) -> bool:
    own = clause.own
    return bool(own) and len(own & (other.own | other.inherited)) >= _ENOUGH * len(own) and bool(own & other.own)


def _duty(facts: SentenceFacts, clause: Clause) -> tuple[str, str]:
    """What the clause says of duty: "must", "optional", "may", "will", or nothing; with the word."""
    words = [word.lower() for word in facts.words[clause.start : clause.end]]
    for at, word in enumerate(words if not clause.negations else ()):
        if word in {"have", "has"} and words[at + 1 : at + 2] == ["to"]:
            return "must", f"{word} to"
        if word in english().duties:
            return english().duties[word], " ".join(words[at : at + 3])
    return "", ""
