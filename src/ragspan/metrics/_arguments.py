"""Checks of the metrics' arguments: a wrong one is an error where the metric is made, not with the first answer."""

from __future__ import annotations

from ragspan.exceptions import ConfigurationError


def require_judge(argument: str, judge: object, *questions: str, asked_by: str | None = None) -> None:
    """Raise unless `judge` is an object that can be asked all of `questions`, which are names of methods.

    A metric that not every judge can answer gives its name as `asked_by`, for an error that says who can.
    """
    who_can = f"; {asked_by} needs an LLMJudge, such as OpenAIJudge, or a judge of your own" if asked_by else ""
    given = f"the class {judge.__name__}" if isinstance(judge, type) else f"a {type(judge).__name__}"
    for question in questions:
        if isinstance(judge, type) or not callable(getattr(judge, question, None)):
            raise ConfigurationError(f"{argument} should be an object with a method {question}(), not {given}{who_can}")


def require_polls(polls: object) -> None:
    if isinstance(polls, bool) or not isinstance(polls, int) or polls < 1:
        raise ConfigurationError(f"polls should be a whole number, at least 1, not {polls!r}")


def require_switch(argument: str, value: object) -> None:
    if not isinstance(value, bool):
        raise ConfigurationError(f"{argument} should be True or False, not {value!r}")


def require_threshold(threshold: object) -> None:
    if isinstance(threshold, bool) or not isinstance(threshold, (int, float)) or not 0 <= threshold <= 1:
        raise ConfigurationError(f"threshold should be a number from 0 to 1, not {threshold!r}")
