"""What an emitter may write, checked once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import get_args

from ragspan.config import SpanStyle
from ragspan.exceptions import ConfigurationError
from ragspan.telemetry.values import MAX_TEXT_CHARS


@dataclass(frozen=True, kw_only=True, slots=True)
class EmitterOptions:
    """The options of `OTelEmitter`, which documents them.

    Raises:
        ConfigurationError: an option has a value that is not allowed.
    """

    score_wait: float
    spans: SpanStyle
    capture_content: bool
    explanations: bool
    max_explanation_chars: int
    openinference: bool

    def __post_init__(self) -> None:
        # `"false"` is true to Python, and would put users' texts on spans.
        for name in ("capture_content", "explanations", "openinference"):
            if not isinstance(getattr(self, name), bool):
                raise _wrong(name, getattr(self, name), "True or False")
        if self.spans not in get_args(SpanStyle):
            raise _wrong("spans", self.spans, " or ".join(map(repr, get_args(SpanStyle))))
        if not (_is_number(self.score_wait) and 0 <= self.score_wait < math.inf):
            raise _wrong("score_wait", self.score_wait, "a number of seconds, 0 or more")
        # A float that is whole would do for the comparison, but not for cutting text; a boolean would do for both.
        if type(self.max_explanation_chars) is not int or not 1 <= self.max_explanation_chars <= MAX_TEXT_CHARS:
            allowed = f"a whole number from 1 to {MAX_TEXT_CHARS} (explanations=False leaves them out)"
            raise _wrong("max_explanation_chars", self.max_explanation_chars, allowed)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _wrong(name: str, value: object, allowed: str) -> ConfigurationError:
    return ConfigurationError(f"{name} is {value!r}, but should be {allowed}")
