"""What an emitter may write, checked once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import get_args

from ragspan.config import SpanStyle
from ragspan.telemetry.content import ContentPolicy, wrong_option


@dataclass(frozen=True, kw_only=True, slots=True)
class EmitterOptions:
    """The options of `OTelEmitter`, which documents them.

    Raises:
        ConfigurationError: an option has a value that is not allowed.
    """

    score_wait: float
    spans: SpanStyle
    content: ContentPolicy
    openinference: bool

    def __post_init__(self) -> None:
        if not isinstance(self.openinference, bool):  # `"false"` is true to Python
            raise wrong_option("openinference", self.openinference, "True or False")
        if self.spans not in get_args(SpanStyle):
            raise wrong_option("spans", self.spans, " or ".join(map(repr, get_args(SpanStyle))))
        if not (_is_number(self.score_wait) and 0 <= self.score_wait < math.inf):
            raise wrong_option("score_wait", self.score_wait, "a number of seconds, 0 or more")


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
