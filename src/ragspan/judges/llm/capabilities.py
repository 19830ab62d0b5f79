"""What an endpoint takes: what it refuses of a request is left out, and the request is made again; later ones leave it out at once.

A refusal names its parameter in a field of its own, or in its words; `PARAMETERS` has the names of all providers, and words that
describe one. What names none fails with the endpoint's words: nothing is guessed. A request is made once more for each parameter that
is refused, and only an answer teaches: where the error was about something else, nothing is left out later.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, NamedTuple

from ragspan.judges.llm.errors import status_of
from ragspan.throttled_log import ThrottledLog


class Parameter(NamedTuple):
    """A parameter that a request can do without, and its score still means the same."""

    names: tuple[str, ...] = ()
    """What else providers call it, or its parts. Case and underscores do not matter."""
    words: str | None = None
    """A pattern for refusals that do not name it."""
    instead: str | None = None
    """The parameter with the same meaning that other models take."""


_FORMAT: Final = "response_format"
PARAMETERS: Final[Mapping[str, Parameter]] = {
    _FORMAT: Parameter(
        (
            *("json_schema", "json_object", "response_schema", "response_json_schema", "response_mime_type"),  # Gemini
            *("output_config", "output_format", "output_schema", "text_format"),  # Anthropic, Bedrock
            *("guided_json", "guided_decoding", "guided_grammar", "structured_outputs", "xgrammar", "outlines"),  # vLLM
            *("tool_choice", "tools", "functions", "function_declarations"),  # frameworks pass a schema as a tool
        ),
        r"schema|grammar|json[ _]mode|json output|generate JSON|structured[ _]output|guided|constrained|\bsamplers?\b"
        r"|\btool (?:use|calling|choice)|function calling|the word .?json|\bformat\b|too many states",
    ),
    "n": Parameter(
        ("candidate_count", "num_candidates", "num_completions", "num_generations", "num_choices", "best_of"),
        r"\b(?:multiple|several|many|one|single|more than one|number of|more than 1) (?:\w+ )?"
        r"(?:candidate|choice|completion|generation|response|output|sequence)s?\b",
    ),
    "temperature": Parameter((), r"sampling param|greedy"),
    "seed": Parameter(("random_seed",)),
    "logprobs": Parameter(("log_probs", "response_logprobs"), r"log.?prob"),
    "max_tokens": Parameter(("max_output_tokens", "max_new_tokens"), instead="max_completion_tokens"),
    "max_completion_tokens": Parameter(instead="max_tokens"),
    "reasoning_effort": Parameter(("reasoning", "thinking_level", "thinking_budget", "thinking_config")),
    **dict.fromkeys(("top_p", "top_k", "top_logprobs", "verbosity", "frequency_penalty"), Parameter()),
    **dict.fromkeys(("presence_penalty", "parallel_tool_calls", "service_tier", "prompt_cache_key"), Parameter()),
}
"""By their names in OpenAI's protocol. What else a user sends (a gateway's rules about who may see the texts, say) is never left out."""
_NAMES = {re.sub("[_-]", "", spelt).lower(): name for name, row in PARAMETERS.items() for spelt in (name, *row.names)}
_WORD = re.compile(r"(?<!\\)\b[A-Za-z][\w-]*")
_MOST_ATTEMPTS = 12
_REFUSING: Final = frozenset({None, 400, 404, 405, 422, 500, 501})
"""Statuses. A proxy answers 404 if no model behind it takes the parameters, local servers that cannot use a schema 500."""
_READ = 4000  # characters: later ones are often the prompt
_OTHER_FIELDS: Final = r"(?:messages|model|prompt|input|user|stream)\b"
_FAILED_GENERATION = re.compile(
    r"failed_generation|json_validate_failed|tool_use_failed|generated JSON|failed to (?:generate|validate) JSON",
    re.IGNORECASE,
)
"""Groq: the model's text did not keep to the schema this time. It costs only this request its schema."""
_log = ThrottledLog()


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointCapabilities:
    """The optional parameters that an endpoint takes."""

    response_format: Literal["json_schema", "json_object", "none"] = "json_schema"
    left_out: frozenset[str] = frozenset()
    """Further parameters that it does not take."""

    def takes(self, parameter: str) -> bool:
        return parameter not in self.left_out

    def parameters(self, *, schema: Mapping[str, Any], n: int, temperature: float) -> dict[str, Any]:
        """Those parameters of a request for replies of a schema that the endpoint takes."""
        kind: dict[str, Any] = {"type": self.response_format}
        if self.response_format == "json_schema":
            kind["json_schema"] = {"name": "answer", "strict": True, "schema": schema}
        return self.kept({"temperature": temperature, _FORMAT: kind} | ({"n": n} if n > 1 else {}))

    def kept(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """The fields that the endpoint takes, under the names that it takes."""
        refused = self.left_out | ({_FORMAT} if self.response_format == "none" else set())
        kept = {name: value for name, value in fields.items() if name not in refused}
        for name in refused & fields.keys():
            instead = PARAMETERS[name].instead
            if instead and instead not in refused:
                kept.setdefault(instead, fields[name])
        return kept

    def without(self, parameter: str) -> EndpointCapabilities:
        """The capabilities without one of `PARAMETERS`; of the format, without its strictest kind."""
        if parameter == _FORMAT:
            return replace(self, response_format="json_object" if self.response_format == "json_schema" else "none")
        return replace(self, left_out=self.left_out | {parameter})


class EndpointHabits:
    """What one endpoint has shown of the parameters that it takes; `capabilities` is what it is expected to take at first.

    Any number of threads and event loops may use it. It has no lock: a race costs a request that learns again.
    """

    def __init__(self, capabilities: EndpointCapabilities | None = None) -> None:
        self.capabilities = capabilities or EndpointCapabilities()


class Attempt:
    """One request on its way to parameters that the endpoint takes."""

    def __init__(self, habits: EndpointHabits) -> None:
        self.capabilities = habits.capabilities
        self._habits = habits
        self._lessons: list[tuple[str, str]] = []
        """Of each refusal that may last: the parameter and its kind."""
        self._left = _MOST_ATTEMPTS

    def goes_on_without(self, error: Exception, sent: Collection[str]) -> bool:
        """Whether there is a simpler request to make after this error than that with these fields; `capabilities` are its then."""
        self._left -= 1
        body = getattr(error, "body", None)
        words = json.dumps(body, default=str, ensure_ascii=False) if isinstance(body, (Mapping, list)) else body
        words = str(words or getattr(error, "message", None) or error)[:_READ]
        name = _refused_parameter(error, words, [name for name in PARAMETERS if name in sent])
        if name is None or not self._left:
            return False
        if not _FAILED_GENERATION.search(words):
            self._lessons.append((name, self.capabilities.response_format if name == _FORMAT else name))
        self.capabilities = self.capabilities.without(name)
        return True

    def ended_well(self) -> None:
        """The request was answered."""
        habits = self._habits
        for name, kind in self._lessons:
            if name != _FORMAT or habits.capabilities.response_format == kind:  # else another request has learned it
                habits.capabilities = habits.capabilities.without(name)
                if name not in {_FORMAT, "n", "temperature"}:
                    words = "the judge's endpoint refuses %s, which is left out from now on"
                    _log.report(f"refused {name}", words, name)


def _refused_parameter(error: Exception, words: str, sent: Collection[str]) -> str | None:
    """Which of the parameters that were sent an error refuses; None if it is about something else, or names none."""
    status, param = status_of(error), str(getattr(error, "param", None) or "")
    if status not in _REFUSING or re.match(_OTHER_FIELDS, param):
        return None
    if status == 500 or _FAILED_GENERATION.search(words):  # noqa: PLR2004 - of HTTP
        is_named = _FAILED_GENERATION.search(words) or re.search(PARAMETERS[_FORMAT].words or "", words, re.IGNORECASE)
        return _FORMAT if is_named and _FORMAT in sent else None
    found = (word[0] for word in _WORD.finditer(f"{param} {words}") if word[0] != "N")
    names = (_NAMES.get(re.sub("[_-]", "", word).lower()) for word in found)
    described = (name for name in sent if (own := PARAMETERS[name].words) and re.search(own, words, re.IGNORECASE))
    return next((name for name in names if name in sent), None) or next(described, None)
