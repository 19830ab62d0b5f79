"""Which parameter of a request an endpoint refuses, by what it says.

A refusal names its parameter in a field of its own, or in its words; the names of all providers are in `PARAMETERS`. What names
none is read by its words. A mistake costs one request: what is left out stays away only if the request is answered without it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ragspan.judges.llm.errors import status_of


@dataclass(frozen=True, kw_only=True, slots=True)
class Parameter:
    """A parameter that a request can do without."""

    name: str
    """In OpenAI's protocol."""
    names: tuple[str, ...] = ()
    """What else providers call it, or its parts. Case and underscores do not matter."""
    words: str | None = None
    """A pattern for refusals that do not name it."""
    instead: str | None = None
    """The parameter with the same meaning that other models take."""


PARAMETERS = (
    Parameter(
        name="response_format",
        names=(
            *("json_schema", "json_object", "response_schema", "response_json_schema", "response_mime_type"),  # Gemini
            *("output_config", "output_format", "output_schema", "text_format"),  # Anthropic, Bedrock
            *("guided_json", "guided_decoding", "guided_grammar", "structured_outputs", "xgrammar", "outlines"),  # vLLM
            *("tool_choice", "tools", "functions", "function_declarations"),  # frameworks pass a schema as a tool
        ),
        words=(
            r"schema|grammar|json[ _]mode|json output|generate JSON|generated JSON|structured[ _]output|guided|constrained"
            r"|\bsamplers?\b|\btool (?:use|calling|choice)|function calling|the word .?json|\bformat\b|too many states"
        ),
    ),
    Parameter(
        name="n",
        names=("candidate_count", "num_candidates", "num_completions", "num_generations", "num_choices", "best_of"),
        words=(
            r"\b(?:multiple|several|many|one|single|more than one|number of|more than 1) (?:\w+ )?"
            r"(?:candidate|choice|completion|generation|response|output|sequence)s?\b"
        ),
    ),
    Parameter(name="temperature", words=r"sampling param|greedy"),
    Parameter(name="top_p"),
    Parameter(name="top_k"),
    Parameter(name="seed", names=("random_seed",)),
    Parameter(name="logprobs", names=("log_probs", "response_logprobs"), words=r"log.?prob"),
    Parameter(name="top_logprobs"),
    Parameter(name="max_tokens", names=("max_output_tokens", "max_new_tokens"), instead="max_completion_tokens"),
    Parameter(name="max_completion_tokens", instead="max_tokens"),
    Parameter(name="reasoning_effort", names=("reasoning", "thinking_level", "thinking_budget", "thinking_config")),
    Parameter(name="verbosity"),
    Parameter(name="frequency_penalty"),
    Parameter(name="presence_penalty"),
    Parameter(name="parallel_tool_calls"),
    Parameter(name="service_tier"),
    Parameter(name="prompt_cache_key"),
)
"""What a request can do without, and its score still means the same. What else a user sends (a gateway's rules about who may
see the texts, say) is never left out."""

REFUSING = frozenset({400, 404, 405, 422, 501})
"""Of HTTP. A proxy answers 404 if no model behind it takes the parameters."""
_UNNAMED = frozenset({400, 422, 501})
"""Where a refusal may name nothing at all."""
_SERVER_ERROR = 500
"""Local servers that cannot use a schema answer so."""
_READ = 4000  # characters: later ones are often the prompt
_OTHER_FIELDS = frozenset({"messages", "model", "prompt", "input", "user", "stream"})
_FAILED_GENERATION = re.compile(
    r"failed_generation|json_validate_failed|tool_use_failed|generated JSON|failed to (?:generate|validate) JSON",
    re.IGNORECASE,
)
"""Groq: the model's text did not keep to the schema this time."""
_PARAMETERS = re.compile(r"\b(?:parameter|argument)s?\b", re.IGNORECASE)
_ELSEWHERE = re.compile(
    r"context.{0,12}(?:length|window|size)|too (?:long|large|many tokens)|exceed|content.?(?:filter|management)|polic(?:y|ies)"
    r"|safety|moderat|blocked|model.{0,60}(?:not found|not exist|unknown|pull)|(?:unknown|invalid|no such) model|api.?key"
    r"|credential|unauthori|quota|billing|credit|balance|\bmessages\b",
    re.IGNORECASE,
)
"""Errors about the texts, the model or the account, which no parameter causes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Refusal:
    """What an error says about a parameter."""

    parameter: str | None
    """Of `PARAMETERS`; None if the error names none, and any of them may be the reason."""
    is_passing: bool = False
    """The next request may well be answered: one generation failed, or the server may be out."""


def refusal_of(error: Exception, sent: Collection[str]) -> Refusal | None:
    """What an error refuses of the parameters that were sent; None if it is about something else."""
    status = status_of(error)
    if status not in (None, _SERVER_ERROR) and status not in REFUSING:
        return None
    texts = "\n".join(_texts_of(error))[:_READ]
    if status == _SERVER_ERROR:
        is_named = re.search(_FORMAT, texts, re.IGNORECASE)
        return Refusal(parameter="response_format", is_passing=not is_named) if "response_format" in sent else None
    if _FAILED_GENERATION.search(texts):
        return Refusal(parameter="response_format", is_passing=True) if "response_format" in sent else None
    fields = list(_fields_named_by(error))
    named = [name for field in fields if (name := _known(field)) in sent]
    if named:
        return Refusal(parameter=named[0])
    if any(field in _OTHER_FIELDS for field in fields):
        return None
    parameter = _named_in(texts, sent)
    if parameter is None:
        may_be_any = status in _UNNAMED or (status in REFUSING and _PARAMETERS.search(texts))
        if not may_be_any or _ELSEWHERE.search(texts):
            return None
    return Refusal(parameter=parameter)


def _named_in(texts: str, sent: Collection[str]) -> str | None:
    """The parameter that is mentioned first, or else described."""
    for word in _WORD.finditer(texts):
        name = _known(word[0])
        if name in sent:
            return name
    described = (
        row.name for row in PARAMETERS if row.name in sent and row.words and re.search(row.words, texts, re.IGNORECASE)
    )
    return next(described, None)


def _known(name: str) -> str | None:
    return _NAMES.get(_spelling(name)) if name != "N" else None


def _spelling(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


def _fields_named_by(error: Exception) -> Iterator[str]:
    """The parts of paths that an error has in fields of its own: OpenAI's `param`, FastAPI's `loc`, Google's `field`."""
    bodies: list[object] = [getattr(error, "body", None), {"param": getattr(error, "param", None)}]
    for body in bodies:
        for key, value in _entries_in(body):
            if key in {"param", "parameter", "field", "loc"}:
                parts = value if isinstance(value, (list, tuple)) else [value]
                yield from (
                    piece for part in parts if isinstance(part, str) for piece in re.split(r"[.\[\]/]", part) if piece
                )


def _texts_of(error: Exception) -> Iterator[str]:
    """All that an error says."""
    body = getattr(error, "body", None)
    texts = [value for _, value in _entries_in(body) if isinstance(value, str)]
    if isinstance(body, str):
        texts.append(body)
    yield from texts or [str(getattr(error, "message", None) or error)]


def _entries_in(body: object, depth: int = 6) -> Iterator[tuple[str, object]]:
    """The keys and values of nested JSON."""
    if depth and isinstance(body, Mapping):
        for key, value in body.items():
            yield str(key), value
            yield from _entries_in(value, depth - 1)
    elif depth and isinstance(body, Sequence) and not isinstance(body, (str, bytes)):
        for item in body:
            yield ("", item) if isinstance(item, str) else ("", None)
            yield from _entries_in(item, depth - 1)


_NAMES = {_spelling(name): row.name for row in PARAMETERS for name in (row.name, *row.names)}
_WORD = re.compile(r"(?<!\\)\b[A-Za-z][\w-]*")
_FORMAT = next(row.words for row in PARAMETERS if row.name == "response_format") or ""
INSTEAD = {row.name: row.instead for row in PARAMETERS if row.instead}
OPTIONAL = tuple(row.name for row in PARAMETERS)
