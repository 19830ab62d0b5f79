"""What an endpoint takes: what it refuses of a request is left out, and the request is made again; later ones leave it out at once.

A refusal names its parameter in a field of its own, or in its words; `PARAMETERS` has the names of all providers. What names none fails
with the endpoint's words: nothing is guessed, and only an answer teaches.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from ragspan.judges.llm.requests import status_of
from ragspan.throttled_log import ThrottledLog

_FORMAT: Final = "response_format"
PARAMETERS: Final[Mapping[str, Sequence[str]]] = {
    _FORMAT: (
        *("json_schema", "json_object", "response_schema", "response_json_schema", "response_mime_type"),  # Gemini
        *("output_config", "output_format", "output_schema", "text_format"),  # Anthropic, Bedrock
        *("guided_json", "guided_decoding", "guided_grammar", "structured_outputs", "xgrammar", "outlines"),  # vLLM
        *("schema", "grammar", "format", "samplers"),  # local servers
        *("tool_choice", "tools", "functions", "function_declarations"),  # frameworks pass a schema as a tool
    ),
    "n": ("candidate_count", "num_candidates", "num_completions", "num_generations", "num_choices", "best_of"),
    "temperature": (),
    "seed": ("random_seed",),
    "logprobs": ("log_probs", "response_logprobs"),
    "max_tokens": ("max_output_tokens", "max_new_tokens"),
    "reasoning_effort": ("reasoning", "thinking_level", "thinking_budget", "thinking_config"),
    **dict.fromkeys(("top_p", "top_k", "top_logprobs", "verbosity", "max_completion_tokens"), ()),
    **dict.fromkeys(("presence_penalty", "frequency_penalty", "service_tier", "prompt_cache_key"), ()),
}
"""What a request can do without, so that its score still means the same: by the name in OpenAI's protocol, what else providers call it or
its parts. What else a user sends (a gateway's rules about who may see the texts, say) is never left out."""
_NAMES = {re.sub("[_-]", "", spelt).lower(): name for name, row in PARAMETERS.items() for spelt in (name, *row)}
_WORD = re.compile(r"(?<!\\)\b[A-Za-z][\w-]*")
_REFUSING: Final = frozenset({None, 400, 404, 405, 422, 500, 501})
"""Statuses. A proxy answers 404 if no model behind it takes the parameters, local servers that cannot use a schema 500."""
_READ = 4000  # characters: later ones are often the prompt
_OTHER_FIELDS: Final = r"(?:messages|model|prompt|input|user|stream)\b"
_FAILED_GENERATION = re.compile(
    r"failed_generation|json_validate_failed|tool_use_failed|failed to generate JSON", re.IGNORECASE
)
"""Groq: the model's text did not keep to the schema this time. It costs only this request its schema."""
_FORMATS: Final = ("json_schema", "json_object", "none")
_log = ThrottledLog()


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointCapabilities:
    """The optional parameters that an endpoint takes. Any number of threads may replace one: a race costs a request that learns again."""

    response_format: Literal["json_schema", "json_object", "none"] = "json_schema"
    left_out: frozenset[str] = frozenset()
    """Further parameters that it does not take."""
    is_for_now: bool = False
    """They are those of one request, and teach nothing about others."""

    def takes(self, parameter: str) -> bool:
        return parameter not in self.left_out

    def parameters(self, *, schema: Mapping[str, Any], n: int, temperature: float) -> dict[str, Any]:
        """Those parameters of a request for replies of a schema that the endpoint takes."""
        kind: dict[str, Any] = {"type": self.response_format}
        if self.response_format == "json_schema":
            kind["json_schema"] = {"name": "answer", "strict": True, "schema": schema}
        return self.kept({"temperature": temperature, _FORMAT: kind} | ({"n": n} if n > 1 else {}))

    def kept(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """The fields that the endpoint takes."""
        refused = self.left_out | ({_FORMAT} if self.response_format == "none" else set())
        return {name: value for name, value in fields.items() if name not in refused}

    def after(self, error: Exception, sent: Collection[str]) -> EndpointCapabilities | None:
        """What to send after this error of a request with these fields; None if it refuses none of them that it can do without."""
        status, param, body = status_of(error), str(getattr(error, "param", None) or ""), getattr(error, "body", None)
        if status not in _REFUSING or re.match(_OTHER_FIELDS, param):
            return None
        words = json.dumps(body, default=str, ensure_ascii=False) if isinstance(body, (Mapping, list)) else body
        words = str(words or getattr(error, "message", None) or error)[:_READ]
        found = (word[0] for word in _WORD.finditer(f"{param} {words}") if word[0] != "N")
        names = (_NAMES.get(re.sub("[_-]", "", word).lower()) for word in found)
        failed = bool(_FAILED_GENERATION.search(words))
        name = _FORMAT if failed else next((name for name in names if name in sent), None)
        if name is None or name not in sent or (status == 500 and name != _FORMAT):  # noqa: PLR2004 - of HTTP
            return None
        is_for_now = self.is_for_now or failed
        if name == _FORMAT:
            weaker: Any = _FORMATS[_FORMATS.index(self.response_format) + 1]
            return replace(self, response_format=weaker, is_for_now=is_for_now)
        return replace(self, left_out=self.left_out | {name}, is_for_now=is_for_now)

    def merged_with(self, answered: EndpointCapabilities) -> EndpointCapabilities:
        """These after a request with others was answered: what that left out is left out from now on."""
        if answered is self or answered.is_for_now:
            return self
        for name in sorted(answered.left_out - self.left_out - {"n", "temperature"}):
            _log.report(f"refused {name}", "the judge's endpoint refuses %s, which is left out from now on", name)
        weaker = max(self.response_format, answered.response_format, key=_FORMATS.index)
        return EndpointCapabilities(response_format=weaker, left_out=self.left_out | answered.left_out)
