"""The share of the answers that a judge is asked about, where the embedded judge reads them all."""

from __future__ import annotations

from dataclasses import dataclass

from ragspan.arguments import number, wrong


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgeShare:
    """How many answers a judge is asked about: the most doubtful ones, and a random part of all.

    Raises:
        ConfigurationError: a share is wrong; the message says what is allowed.
    """

    total: float
    """Of the answers, above 0, up to 1."""
    random: float
    """Of the answers, 0 to `total`: what is drawn at random, before anything is known of the answer. Without it the true rate of
    failures cannot be estimated."""

    def __post_init__(self) -> None:
        number("a share above 0, up to 1", lambda value: 0 < value <= 1).check("judge_share", self.total)
        within = f"a share from 0 to {self.total:g}, which is all that the judge is asked about"
        number(within, lambda value: 0 <= value <= self.total).check("the random part of judge_share", self.random)

    @property
    def doubtful(self) -> float:
        """The share of the most doubtful answers that brings the total about: some of them are drawn at random as well."""
        return 0.0 if self.random >= 1 else (self.total - self.random) / (1 - self.random)

    @classmethod
    def of(cls, value: object, name: str = "judge_share") -> JudgeShare:
        """The share that `0.2`, `"0.2"` or `"0.2:0.1"` says; without a random part that is a quarter of it.

        Raises:
            ConfigurationError: it says none.
        """
        if isinstance(value, JudgeShare):
            return value
        total, colon, random = str(value).partition(":")
        try:
            return cls(total=float(total), random=float(random) if colon else float(total) / 4)
        except ValueError:  # a `ConfigurationError` is a `ValueError`, too
            words = "a share above 0, up to 1, such as 0.2; a colon and its random part, no larger, may follow, such as '0.2:0.1'"
            raise wrong(name, value, words) from None

    def __str__(self) -> str:
        return f"{self.total:g}:{self.random:g}"
