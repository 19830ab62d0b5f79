"""Guards behind an OpenAI-compatible endpoint: models that answer one question, each in its own form."""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

import msgspec

from ragspan.arguments import choice, wrong
from ragspan.judges.detectors.detector import ServedDetector
from ragspan.judges.endpoint import post_what_it_takes
from ragspan.judges.judge_protocols import ClaimVerdict, Verdict
from ragspan.judges.llm.capabilities import EndpointHabits
from ragspan.judges.llm.chat_protocol import read_completions
from ragspan.judges.session import report_usage
from ragspan.records import RagRecord
from ragspan.text.limits import beginnings

GuardForm: TypeAlias = Literal["granite-guardian", "lynx"]

_AT_ONCE = 8
"""Requests for one record."""


@dataclass(kw_only=True, eq=False, repr=False)
class GuardDetector(ServedDetector):
    """Asks a guard, one request a claim, at an endpoint that speaks OpenAI's chat protocol, such as vLLM.

    `form="granite-guardian"`: IBM's Granite Guardian 3.3 and later. The contexts are sent as `documents`, the criterion
    (`groundedness`) as a setting of the chat template. The guard answers `<score>yes</score>` for text that is not grounded.
    The verdict has a probability if the endpoint gives `logprobs`.

    `form="lynx"`: Patronus Lynx. The contexts, the question and the text are sent as DOCUMENT, QUESTION and ANSWER. The guard
    answers JSON with REASONING and a SCORE of PASS or FAIL. `template=` takes the prompt of the model's card word for word.

    Checked against scripted servers, not against the weights.

    Raises:
        ConfigurationError: an argument is wrong.
    """

    model: str = field(kw_only=False)
    """The model's name, as the endpoint knows it."""
    form: GuardForm = field(kw_only=False)
    """How the guard is asked."""
    base_url: str
    """The endpoint, such as `http://localhost:8000/v1`."""
    name: str = ""
    """The judge's name in every score; by default the form and the model."""
    template: str | None = None
    """Lynx only: a prompt with the fields `{question}`, `{document}` and `{answer}`."""
    max_context_chars: int = 60_000
    """Characters of all contexts that are sent; long ones are cut to their beginnings. See `LLMJudge`."""
    _habits: EndpointHabits = field(init=False, default_factory=EndpointHabits)

    def __post_init__(self) -> None:
        choice(*get_args(GuardForm)).check("form", self.form)
        if self.template is not None and not all(f"{{{field}}}" in self.template for field in _FIELDS):
            fields = ", ".join(f"{{{field}}}" for field in _FIELDS)
            raise wrong("template", self.template, f"a text with the fields {fields}")
        self.name = self.name or f"{self.form}:{self.model}"
        self._aim(self.base_url)

    async def detect(self, record: RagRecord, texts: Sequence[str]) -> list[ClaimVerdict]:
        whole = [context.text for context in record.contexts or () if context.text.strip()]
        contexts = beginnings(whole, self.max_context_chars)
        free = asyncio.Semaphore(_AT_ONCE)

        async def ask(index: int, text: str) -> ClaimVerdict | None:
            async with free:
                return await self._ask(index, text, record.question or "", contexts, is_cut=contexts != whole)

        found = await asyncio.gather(*(ask(index, text) for index, text in enumerate(texts)))
        return [verdict for verdict in found if verdict is not None]

    async def _ask(
        self, index: int, text: str, question: str, contexts: Sequence[str], *, is_cut: bool
    ) -> ClaimVerdict | None:
        """None if the guard does not answer in its form."""
        build, read = _FORMS[self.form]
        body = {"model": self.model, "temperature": 0.0, **build(self.template or _LYNX, question, contexts, text)}
        async with self._endpoint.asking([question, *contexts, text]) as post:
            reply = await post_what_it_takes(post, self._habits, lambda capabilities: capabilities.kept(body))
        completion = read_completions(reply)[0]
        report_usage(completion.usage)
        answer = read(completion.text, reply)
        if answer is None:
            return None
        supported, probability, reason = answer
        words = f"{self.name} finds it {'supported' if supported else 'not supported'}"
        cut = " [it read only the beginnings of the contexts]" if is_cut else ""
        explanation = f"{words}{f': {reason}' if reason else ''}{cut}"
        verdict: Verdict = "supported" if supported else "unsupported"
        return ClaimVerdict(index=index, verdict=verdict, probability=probability, explanation=explanation)


_Answer: TypeAlias = "tuple[bool, float | None, str]"
"""Whether the text is supported, the probability if the guard gives one, and the reason or an empty text."""


def _granite_body(_template: str, question: str, contexts: Sequence[str], text: str) -> dict[str, Any]:
    asked = [{"role": "user", "content": question}] if question else []
    return {
        "messages": [*asked, {"role": "assistant", "content": text}],
        "documents": [{"doc_id": str(number), "text": context} for number, context in enumerate(contexts)],
        "chat_template_kwargs": {"guardian_config": {"criteria_id": "groundedness"}, "think": False},
        "max_tokens": 32,
        "logprobs": True,
        "top_logprobs": 20,
    }


def _read_granite(text: str, reply: object) -> _Answer | None:
    found = _SCORE.findall(text)
    if not found:
        return None
    supported = found[-1].lower() == "no"  # the guard looks for text that is not grounded
    probability = _probability_of_no(reply)
    if probability is not None and (probability >= _HALF) != supported:
        probability = None  # it contradicts the verdict
    return supported, probability, ""


def _lynx_body(template: str, question: str, contexts: Sequence[str], text: str) -> dict[str, Any]:
    fields = {"question": question, "document": "\n\n".join(contexts), "answer": text}
    prompt = _FIELD.sub(lambda match: fields[match[1]], template)  # in one pass, because a text may hold a field's name
    return {"messages": [{"role": "user", "content": prompt}], "max_tokens": 1024}


def _read_lynx(text: str, _reply: object) -> _Answer | None:
    """The verdict, with the reasons if the reply is JSON."""
    found = _PASS_OR_FAIL.findall(text)
    if not found:
        return None
    try:
        reasoning = json.loads(text).get("REASONING", "")
    except (ValueError, AttributeError, RecursionError):
        reasoning = ""
    lines = reasoning if isinstance(reasoning, list) else [reasoning]
    return found[-1].upper() == "PASS", None, " ".join(str(line).strip() for line in lines)[:_MAX_REASON]


class _Token(msgspec.Struct):
    token: str
    logprob: float
    top_logprobs: list[_Token] = []


class _Logprobs(msgspec.Struct):
    content: list[_Token] = []


def _probability_of_no(reply: object) -> float | None:
    """P(no) / (P(no) + P(yes)) where the last of the two words stands; None if the endpoint gives no logprobs."""
    try:
        choice = reply["choices"][0] if isinstance(reply, Mapping) else {}
        tokens = msgspec.convert(choice.get("logprobs"), _Logprobs).content
    except (msgspec.ValidationError, AttributeError):
        return None
    place = next((token for token in reversed(tokens) if _word(token) in _ANSWERS), None)
    if place is None:
        return None
    sums = dict.fromkeys(_ANSWERS, 0.0)
    for token in place.top_logprobs or [place]:
        if _word(token) in sums:
            sums[_word(token)] += math.exp(min(0.0, token.logprob))
    total = sum(sums.values())
    return sums["no"] / total if total else None


def _word(token: _Token) -> str:
    return token.token.strip().lower()


_FORMS: dict[str, tuple[Callable[..., dict[str, Any]], Callable[[str, object], _Answer | None]]] = {
    "granite-guardian": (_granite_body, _read_granite),
    "lynx": (_lynx_body, _read_lynx),
}
_ANSWERS = ("no", "yes")
_HALF = 0.5
_MAX_REASON = 500
_SCORE = re.compile(r"<score>\s*(yes|no)\s*</score>", re.IGNORECASE)
_PASS_OR_FAIL = re.compile(r"""["']?SCORE["']?\s*:\s*["']?(PASS|FAIL)\b""", re.IGNORECASE)
_FIELDS = ("question", "document", "answer")
_FIELD = re.compile(r"\{(question|document|answer)\}")
_LYNX = """\
Decide whether the ANSWER is faithful to the DOCUMENT: it adds nothing to the DOCUMENT and contradicts nothing in it. \
The QUESTION is no source of facts. The score is "PASS" for a faithful answer and "FAIL" for any other. Show your reasoning.

--
QUESTION (THIS DOES NOT COUNT AS BACKGROUND INFORMATION):
{question}

--
DOCUMENT:
{document}

--
ANSWER:
{answer}

--

Reply in JSON with the keys "REASONING" and "SCORE":
{"REASONING": <your reasoning as bullet points>, "SCORE": <your final score>}
"""
"""The headings, keys and scores are those that Lynx was trained with; the sentences around them are ours."""
