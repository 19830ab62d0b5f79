"""A sentence of a context that denies what a claim says, says its opposite, or has two of its words in each other's place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ragspan.judges.screen.claims import Claim, Finding
from ragspan.judges.screen.contexts import Near
from ragspan.judges.screen.facts import Clause, Facts, english, is_past, tells
from ragspan.text.keys import is_number
from ragspan.text.vocabulary import word_set
from ragspan.turns import with_turns

_INHERITED = 0.75  # what a word counts if only an earlier clause of the sentence holds it
_ENOUGH, _NEARLY_ALL, _SURER = 0.55, 0.85, 0.15
"""The share of a clause's words that the other side has to hold, in a response of a sentence or two and in a longer one; and how much
more where only a negation differs."""
_ALIKE, _MOST_ALIKE = 0.5, 0.7
"""The share of a claim's words that a sentence needs in which others do the same; and in which the order is another."""
_DENIED, _LONGEST, _REACH = 2, 10, 8
"""Words behind a negation that it is about, content words of a claim whose roles are looked at, and words beside "before" that are."""
_PIVOTS = {"before": "before after then >", "after": "after before then <", "than": "than", "to": "to"}
_SOFT = frozenset({"against", "instead", "otherwise", "waiv", "exempt", "until", "free"})
"""Words that may deny, if the side without a negation alone has them: "advise against"; "only" does as the first word, or beside "not ... unless"."""
_BEING = word_set("is are was were be been being get gets got")
_DETERMINERS = word_set("the a an its his her their this these all some to")
_ENDING = word_set(
    "in at on from with as into onto under over between against through about during than that which who"
)
"""Words that end what a verb is done to."""


def _beside(kind: str, claim: Claim, near: Near, ours: str = "", theirs: str = "") -> Finding:
    """The claim and the sentence; or words of both."""
    ours, theirs = ours or claim.sentence.text, theirs or claim.index.texts[near.place]
    return Finding(kind=kind, response=ours, context=theirs, place=near.place)


class _Match(NamedTuple):
    """A clause of a context beside a clause of the claim."""

    score: float
    disagrees: bool
    share: float
    clause: Clause
    near: Near
    opposed: list[tuple[str, str]]  # a word of the claim with its opposite in the context
    is_clear: bool  # each side has the words that the other denies


def find_opposition(claim: Claim) -> Finding | None:
    """The first clause of the claim whose best counterpart says the opposite, where none nearly as good agrees."""
    enough, fewest = (_ENOUGH, 1) if claim.response.lone else (_NEARLY_ALL, 4)
    opposites = claim.opposites.values()
    if not claim.facts.may_deny and not any(
        near.facts.may_deny or not all(map(near.facts.content.isdisjoint, opposites)) for near in claim.near
    ):
        return None  # as of most claims
    for clause in claim.facts.clauses:
        matches = [match for near in claim.near for match in _matches(claim, clause, near)]
        if len(clause.own) < fewest or not matches:
            continue
        best = max(matches, key=lambda match: match[:2])
        if not (best.disagrees and best.is_clear) or best.share < (enough if best.opposed else enough + _SURER):
            continue
        keys = [claim.facts.keys, best.near.facts.keys]
        plain, denying = reversed(keys) if clause.negations else keys
        limits = [key for side in keys for key in side[: len(side) if "unless" in denying else 1]]
        is_soft = "only" in limits or not _SOFT.isdisjoint(set(plain).difference(denying))
        if any(one.negations and one.own & best.clause.own - clause.own for one in claim.facts.clauses):
            continue  # another clause denies the same: "except for sale items, which cannot be returned"
        if (is_soft and not best.opposed) or any(  # another clause that fits as well agrees
            not match.disagrees
            and (match.score >= best.score or 1 < len(clause.own) == len(clause.own & match.clause.own))
            for match in matches
        ):
            continue
        if not best.opposed:
            return _beside("negation", claim, best.near)
        sides = zip((claim.facts, best.near.facts), best.opposed[0], strict=True)
        return _beside("opposite", claim, best.near, *(side.words[side.keys.index(word)] for side, word in sides))
    return None


def _matches(claim: Claim, clause: Clause, near: Near) -> Iterator[_Match]:
    facts, opposites = near.facts, english().opposites
    lifts = bool({"unless", "without"}.intersection(facts.keys).difference(claim.facts.keys))  # a prohibition
    words = clause.own if len(clause.own) > 1 else clause.own | clause.inherited
    # Not the exchanged sides of comparisons.
    for other in with_turns(facts.clauses) if "than" not in claim.facts.keys or "than" not in facts.keys else ():
        if not (other.own or other.negations):
            continue
        # "Prohibited" beside "permitted" denies once, "excluded from" as it is; "prohibited without" allows what is with it.
        denied = {claim.facts.keys[at] for at in clause.negations}.union(facts.keys[at] for at in other.negations)
        opposed, shared = [], 0.0
        for word in words:
            if word in "<>" and not any(is_number(key) and key in facts.keys for key in claim.facts.keys):
                continue  # "under 2 kg" beside "over 5 kg"
            if word in other.own:
                shared += 1
            elif word in clause.own and (said := opposites.get(word, frozenset()) & other.own - claim.facts.content):
                if "open" in {word, *said} and any(one.kind == "time" for one in facts.quantities):
                    continue  # what is open from nine to five closes at five
                opposed.append((word, min(said)))
            elif word in other.inherited and word not in denied:
                shared += _INHERITED if word in clause.own else 1
        rest = max(1, len(words) - len(opposed))
        turns = bool(clause.negations) + bool(other.negations) + sum(lifts or denied.isdisjoint(one) for one in opposed)
        paired = frozenset(word for pair in opposed for word in pair)
        is_clear = _holds_denied(claim.facts, clause, other, paired) and _holds_denied(facts, other, clause, paired)
        yield _Match(shared + len(opposed), turns % 2 == 1, shared / rest, other, near, opposed, is_clear)


def _holds_denied(facts: Facts, clause: Clause, facing: Clause, opposed: frozenset[str]) -> bool:
    """Whether the facing clause has a word that each negation of the clause denies: of the next two; else of the first one."""
    there = facing.own | facing.inherited | opposed
    for negation in clause.negations:
        heads = [word for word in facts.keys[negation + 1 : clause.end] if word in clause.own][:_DENIED]
        heads = heads or [word for word in facts.keys[clause.start : clause.end] if word in clause.own][:1]
        if there.isdisjoint(heads):
            return False
    return True


# Who does what to whom, and what comes first or is more


class _Frame(NamedTuple):
    """A verb with who does it and to whom."""

    verb: str
    agent: frozenset[str]
    patient: frozenset[str]
    denied: bool
    named: bool  # who does it is a name


def find_exchange(claim: Claim) -> Finding | None:
    """Who does something, where the context says that another does it; or what is first or more, the other way round."""
    if not claim.near or len(claim.facts.content) > _LONGEST:
        return None
    if any(one in claim.facts.keys for one in _PIVOTS) and (found := _other_order(claim)) is not None:
        return found
    for ours in _frames(claim.facts):
        held = [(near, theirs) for near in claim.near for theirs in _frames(near.facts, ours.verb)]
        if any(
            ours.agent & theirs.agent and (not theirs.patient or ours.patient & theirs.patient) for _, theirs in held
        ):
            continue
        for near, theirs in held:
            exchanged = ours.agent & theirs.patient and ours.patient & theirs.agent
            is_alike = ours.named == theirs.named and (ours.named or claim.response.lone)
            is_other = is_alike and abs(len(ours.agent) - len(theirs.agent)) <= 1
            replaced = is_other and len(ours.patient & theirs.patient) >= max(1, _ALIKE * len(ours.patient))
            if near.share >= _ALIKE and ours.denied == theirs.denied and (exchanged or replaced):
                return _beside("role", claim, near)
    return None


def _frames(facts: Facts, verb: str = "") -> Iterator[_Frame]:
    """The verbs of a sentence that somebody does; of one word only, if it is given."""
    auxiliaries, keys, content = english().auxiliaries, facts.keys, facts.content.difference("<>")
    for at, word in enumerate(keys):
        if (verb and word != verb) or not at or word not in content:
            continue
        # A verb by its form, and by what is before and after it.
        written, before, after = facts.words[at], keys[at - 1], "".join(keys[at + 1 : at + 2])
        follows = before in auxiliaries or before in content
        has_form = written.endswith("s") or before in auxiliaries - _BEING
        follows = follows and at not in facts.pauses and (after in _DETERMINERS or (has_form and after in content))
        is_verb = (is_past(written) or follows) and before not in _DETERMINERS - {"to"} and after not in auxiliaries
        if written[0].isupper() or not is_verb:
            continue
        clause = facts.clause_at(at)
        agent, patient = content.intersection(keys[clause.start : at]), _until_ending(facts, at + 1, clause.end)
        being = (word.lower().removesuffix("n't") for word in facts.words[max(0, at - 3) : at])
        if is_past(written) and (after == "by" or not _BEING.isdisjoint(being)):
            by = next((place for place in range(at + 1, clause.end) if keys[place] == "by"), clause.end)
            agent, patient = _until_ending(facts, by + 1, clause.end), agent or clause.inherited
        if agent:
            capitals = [(place, facts.words[place][0].isupper()) for place, key in enumerate(keys) if key in agent]
            named = any(place and capital for place, capital in capitals) or all(capital for _, capital in capitals)
            yield _Frame(word, agent, patient, any(place < at for place in clause.negations), named)


def _until_ending(facts: Facts, start: int, end: int) -> frozenset[str]:
    """The content words up to the next preposition or comma."""
    end = next((at for at in range(start, end) if facts.keys[at] in _ENDING or at in facts.pauses), end)
    return facts.content.intersection(facts.keys[start:end])


def _other_order(claim: Claim) -> Finding | None:
    """Two words on either side of "before", "after", "then", "than" or "from ... to" that stand the other way round."""
    ours, opposites = claim.facts, english().opposites
    for pivot, near in ((pivot, near) for pivot in _PIVOTS if pivot in ours.keys for near in claim.near):
        theirs = near.facts
        other = next((word for word in _PIVOTS[pivot].split() if word in theirs.keys), "")
        if not other or near.share < (_ALIKE if pivot == "than" else _MOST_ALIKE):
            continue
        said, held = _sides(ours, pivot), _sides(theirs, other)
        crossed = said[0] & held[1] - said[1] and said[1] & held[0] - held[1]
        kept = said[0] & held[0] and said[1] & held[1]
        turned = pivot == "than" and any(  # one compares by the opposite of the other's word: larger, smaller
            opposite in theirs.keys and opposite not in ours.keys and word not in theirs.keys
            for word in ours.keys
            for opposite in opposites.get(word, ())
        )
        if (crossed and not turned) or (turned and kept and not crossed):
            return _beside("order", claim, near)
    return None


def _sides(facts: Facts, pivot: str) -> tuple[frozenset[str], frozenset[str]]:
    """What comes first, or is more, and the other."""
    at = facts.keys.index(pivot)
    clause = facts.clause_at(at)
    # "It is longer but safer than": the subject may be in the clause before.
    start, end = 0 if pivot == "than" else clause.start, clause.end
    if pivot == "to":  # only of "from Vienna to Rome"
        start = max((place for place in range(start, at) if facts.keys[place] == "from"), default=at)
    before, after = facts.keys[max(start, at - _REACH) : at], facts.keys[at + 1 : min(end, at + 1 + _REACH)]
    if not at:  # "Before meals, take two."
        end = min((place for place in facts.pauses if place), default=len(facts.keys))
        before, after = facts.keys[end : end + _REACH], facts.keys[1:end]
    sides = frozenset(filter(tells, before)), frozenset(filter(tells, after))
    return sides[::-1] if pivot in {"after", ">"} else sides
