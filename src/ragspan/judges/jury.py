"""A jury: the votes of one question, spread over several judges."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ragspan.arguments import Rule, has_methods
from ragspan.exceptions import BudgetExhausted, JudgeError
from ragspan.judges.judge_protocols import ClaimVerdict, ContextRating, Judge, Rating, Vote
from ragspan.records import RagRecord
from ragspan.throttled_log import ThrottledLog

_T = TypeVar("_T")
_log = ThrottledLog()


@dataclass(frozen=True, slots=True)
class Jury:
    """Several judges: context adherence and completeness spread their votes over them, other metrics ask the first.

    Models of different makers err in different places, so a mean of theirs errs less than one of the same number of votes
    of one model. With three votes and two judges the first has two. Where a judge fails the others' votes count, and the log
    says so once a minute; where they are no more than half of what was asked for, or its replies cannot be read, there is no score: the
    failure is that judge's. The texts go to each judge's provider.

    Args:
        judges: two or more, in order.

    Raises:
        ConfigurationError: there are fewer, or one is not a judge.
    """

    judges: Sequence[Judge]

    def __post_init__(self) -> None:
        judges = tuple(self.judges)
        Rule("two or more, in a list", lambda count: count > 1).check("the number of judges", len(judges))
        for position, judge in enumerate(judges):
            words = "a judge, with methods vote_adherence and rate_completeness"
            has_methods(words, "vote_adherence", "rate_completeness").check(f"judges[{position}]", judge)
        object.__setattr__(self, "judges", judges)

    @property
    def first(self) -> Judge:
        """Who answers what is not voted on."""
        return self.judges[0]

    @property
    def name(self) -> str:
        """All names, with commas between them."""
        return ",".join(judge.name for judge in self.judges)

    @property
    def prompt_version(self) -> str | None:
        """Of the judges' prompts, each version once."""
        versions = dict.fromkeys(getattr(judge, "prompt_version", None) for judge in self.judges)
        return ",".join(filter(None, versions)) or None

    def share_read(self, record: RagRecord) -> float:
        """The share of the texts that each judge reads, 0..1: the least of them."""
        return min(getattr(judge, "share_read", lambda _: 1.0)(record) for judge in self.judges)

    async def vote_adherence(self, record: RagRecord, votes: int) -> list[Vote]:
        return await self._spread(votes, lambda judge, count: judge.vote_adherence(record, count))

    async def rate_completeness(self, record: RagRecord, ratings: int) -> list[Rating]:
        return await self._spread(ratings, lambda judge, count: judge.rate_completeness(record, count))

    async def extract_claims(self, record: RagRecord) -> list[str]:
        return await self.first.extract_claims(record)

    async def verify_claims(self, record: RagRecord, claims: Sequence[str]) -> list[ClaimVerdict]:
        return await self.first.verify_claims(record, claims)

    async def judge_usefulness(self, record: RagRecord) -> list[ContextRating]:
        return await self.first.judge_usefulness(record)

    def shares(self, wanted: int) -> list[tuple[Judge, int]]:
        """How many of so many votes each judge has; those that have none are left out."""
        each, rest = divmod(wanted, len(self.judges))
        return [(judge, count) for at, judge in enumerate(self.judges) if (count := each + (at < rest))]

    async def _spread(self, wanted: int, ask: Callable[[Judge, int], Awaitable[list[_T]]]) -> list[_T]:
        """`wanted` answers, from the judges in turn; all are asked at once."""
        shares = self.shares(wanted)
        asked = await asyncio.gather(*(ask(*share) for share in shares), return_exceptions=True)
        found = [one for answers in asked if not isinstance(answers, BaseException) for one in answers]
        for (judge, _), error in zip(shares, asked, strict=True):
            if not isinstance(error, BaseException):
                continue
            kind = error.error_type if isinstance(error, JudgeError) else type(error).__name__
            # Replies that cannot be read are not missing at random.
            if 2 * len(found) > wanted and kind != "InvalidVerdict" and isinstance(error, Exception):
                _log.report(judge.name, "the jury votes without %s, which failed with %.100s", judge.name, kind)
            elif isinstance(error, JudgeError) and not isinstance(error, BudgetExhausted):
                words, status = f"{judge.name}: {error}", error.status
                raise JudgeError(kind, words, outage=error.outage, status=status, usage=error.usage)
            else:
                raise error
        return found
