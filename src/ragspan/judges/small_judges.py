"""Small judges: classifiers and guards that tell what contexts do not support, and answer no other question.

`RAGSPAN_JUDGE=minicheck:http://localhost:11434/v1` is a row of `_FORMS` and the address of its server. Checked against scripted servers
that answer as the models' cards say, not with their weights.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any, Final, NamedTuple

from ragspan.arguments import TEXT, one_of
from ragspan.exceptions import JudgeError
from ragspan.judges.detector import Detector
from ragspan.judges.endpoint import MAX_RETRIES, PATH, Endpoint
from ragspan.judges.judge_protocols import ClaimVerdict
from ragspan.judges.llm.replies import read_completions
from ragspan.judges.selection import beginnings
from ragspan.judges.session import report_usage
from ragspan.records import RagRecord
from ragspan.text.limits import size_of


class _Asked(NamedTuple):
    """What one request asks about: all texts, or one."""

    contexts: Sequence[str]
    question: str
    texts: Sequence[str]

    @property
    def answer(self) -> str:
        return " ".join(self.texts)

    @property
    def document(self) -> str:
        return "\n\n".join(self.contexts)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Form:
    """How one kind of model is asked, and what it replies."""

    body: Callable[[_Asked], dict[str, Any]]
    read: Callable[[_Asked, str, Any], list[ClaimVerdict]]
    """The verdicts in a reply, by its text and as a whole; any usual exception means that it is not of this form."""
    model: str | None = None
    """The name that servers usually have for it; None where the server has one model."""
    path: str = PATH
    asks_all: bool = False
    """Whether one request asks about all texts; else there is one for each."""
    reads_whole: bool = True


def _by_spans(asked: _Asked, spans: Sequence[tuple[int, int, float | None]]) -> list[ClaimVerdict]:
    """Each text that a span touches is unsupported, the others are supported."""
    found: list[ClaimVerdict] = []
    starts = accumulate((len(text) + 1 for text in asked.texts), initial=0)
    for index, (text, begin) in enumerate(zip(asked.texts, starts, strict=False)):
        parts = [(text[max(start - begin, 0) : max(end - begin, 0)].strip(), score) for start, end, score in spans]
        for part, score in parts:
            if part:
                said = "" if score is None else f" with a probability of {score:.2f}"
                sure, said = None if score is None else 1 - score, f'"{part}" is marked as unsupported{said}'
                found.append(ClaimVerdict(index=index, verdict="unsupported", probability=sure, explanation=said))
        if not any(part for part, _ in parts):
            found.append(ClaimVerdict(index=index, verdict="supported", explanation="nothing is marked in it"))
    return found


def _read_spans(asked: _Asked, _text: str, reply: Any) -> list[ClaimVerdict]:
    spans = [(int(one["start"]), int(one["end"]), float(one["hallucination_score"])) for one in reply["predictions"]]
    if any(not 0 <= score <= 1 for *_, score in spans):
        raise ValueError(reply)
    return _by_spans(asked, spans)


def _read_quotes(asked: _Asked, text: str, _reply: Any) -> list[ClaimVerdict]:
    """`{"hallucinated_spans": [{"text": …}]}`: each is quoted from the answer; one that is not there raises."""
    found = json.loads(text[text.index("{") : text.rindex("}") + 1])
    starts = [(asked.answer.index(quote), quote) for one in found["hallucinated_spans"] if (quote := one["text"])]
    return _by_spans(asked, [(start, start + len(quote), None) for start, quote in starts])


def _yes_or_no(pattern: str, *, supported: str) -> Callable[[_Asked, str, Any], list[ClaimVerdict]]:
    """Reads the last match of a pattern that has `yes` or `no` as its group; one of them means that the text is supported."""

    def read(_asked: _Asked, text: str, _reply: Any) -> list[ClaimVerdict]:
        is_supported = re.findall(pattern, text, re.IGNORECASE)[-1].lower() == supported
        said = f"the model finds it {'supported' if is_supported else 'not supported'}"
        return [ClaimVerdict(index=0, verdict="supported" if is_supported else "unsupported", explanation=said)]

    return read


_SHORT: Final = {"max_tokens": 32}
_FIND_SPANS: Final = """\
You find what a given context does not support in an answer. Quote each such part word for word from the answer, with a category \
(contradiction, fabricated_reference or unsupported_addition) and a subcategory. What agrees with the context is not quoted. Reply with \
nothing but a JSON object: {"hallucinated_spans": [{"text": "...", "category": "...", "subcategory": "..."}]}; the list is empty if the \
context supports all of the answer."""
"""In our words; give `system=` the words of the model's card, with which it was trained."""
_FORMS: Final[Mapping[str, _Form]] = {
    "lettucedetect": _Form(  # LettuceDetect's own server (0.2), which cuts long contexts into parts itself
        body=lambda asked: {"contexts": asked.contexts, "question": asked.question, "answer": asked.answer},
        read=_read_spans,
        path="/v1/lettucedetect/spans",
        asks_all=True,
    ),
    "lettucedetect-generative": _Form(  # lettucedect-v2-qwen-2b, served by vLLM
        body=lambda asked: _messages(
            f"{asked.question}\n\n{asked.document}\n\nAnswer to verify:\n{asked.answer}".strip(), system=_FIND_SPANS
        ),
        read=_read_quotes,
        model="KRLabsOrg/lettucedect-v2-qwen-2b",
        asks_all=True,
    ),
    "minicheck": _Form(  # Bespoke-MiniCheck on Ollama, a document and a claim
        body=lambda asked: _messages(f"Document: {asked.document}\nClaim: {asked.answer}") | _SHORT,
        read=_yes_or_no(r"\b(yes|no)\b", supported="yes"),
        model="bespoke-minicheck",
        reads_whole=False,
    ),
    "granite-guardian": _Form(  # 3.3 replies <score>yes</score> where text is not grounded, guardian-core {"score": "yes"}
        body=lambda asked: {
            **_messages(asked.question, assistant=asked.answer),
            "documents": [{"doc_id": str(at), "text": text} for at, text in enumerate(asked.contexts)],
            "chat_template_kwargs": {"guardian_config": {"criteria_id": "groundedness"}, "think": False},
            **_SHORT,
        },
        read=_yes_or_no(r"""(?:<score>|["']score["']\s*:)\s*["']?(yes|no)\b""", supported="no"),
        model="ibm-granite/granite-guardian-3.3-8b",
    ),
}
"""By the names of judges. An address of LettuceDetect that ends in /v1 is that of its generative form."""
_AT_ONCE: Final = 8
"""Requests for one record."""


def _messages(user: str, *, system: str = "", assistant: str = "") -> dict[str, Any]:
    said = {"system": system, "user": user, "assistant": assistant}
    return {"messages": [{"role": role, "content": text} for role, text in said.items() if text]}


@dataclass(kw_only=True, eq=False, repr=False)
class SmallJudge(Detector):
    """A small model behind a server: `SmallJudge("minicheck", "http://localhost:11434/v1")`.

    Raises:
        ConfigurationError: an argument is wrong.
    """

    form: str = field(kw_only=False)
    """`"lettucedetect"`, `"minicheck"` or `"granite-guardian"`."""
    address: str = field(kw_only=False)
    """The server's, such as `http://localhost:8000/v1`; that of LettuceDetect's own server has no `/v1`."""
    model: str | None = None
    """As the server knows it; else the usual name of the form's model."""
    system: str | None = None
    """The system prompt of the model's card, in place of ours."""
    languages: frozenset[str] | None = frozenset({"en"})
    """ISO 639-1 codes that the model was trained for; None is any."""
    api_key: str | None = None
    """Sent as a bearer token, for a server behind a gateway."""
    timeout: float = 60.0
    """Seconds for one attempt."""
    max_retries: int = MAX_RETRIES
    max_context_chars: int = 60_000
    """Characters of all contexts that are sent; long ones are cut to their beginnings. See `LLMJudge`."""

    def __post_init__(self) -> None:
        if self.form == "lettucedetect" and self.address.rstrip("/").endswith("/v1"):
            self.form = "lettucedetect-generative"
        one_of(*_FORMS).check("form", self.form)
        TEXT.check_fields(self, "address")
        form = self._form = _FORMS[self.form]
        self.languages = None if self.languages is None else frozenset(self.languages)
        self.model = self.model or form.model
        self.name = f"{self.form}:{self.model}" if self.model else self.form
        self.reads_whole = form.reads_whole
        options: dict[str, Any] = {"timeout": self.timeout, "max_retries": self.max_retries}
        self._endpoint = Endpoint(self.address, path=form.path, api_key=self.api_key or "no-key", **options)

    async def detect(self, record: RagRecord, texts: Sequence[str]) -> list[ClaimVerdict]:
        whole = [context.text for context in record.contexts or () if context.text.strip()]
        contexts, question = beginnings(whole, self.max_context_chars), record.question or ""
        free = asyncio.Semaphore(_AT_ONCE)

        async def ask(index: int, asked: Sequence[str]) -> list[ClaimVerdict]:
            async with free:
                found = await self._ask(_Asked(contexts, question, asked))
            return [replace(one, index=one.index + index) for one in found]

        requests = [(0, texts)] if self._form.asks_all else enumerate(zip(texts))
        found = await asyncio.gather(*(ask(*each) for each in requests))
        return [one for each in found for one in each]

    def share_read(self, record: RagRecord) -> float:
        """The share of the contexts' characters that is sent, 0..1."""
        size = sum(size_of(context.text) for context in record.contexts or ())
        return min(1.0, self.max_context_chars / max(size, 1))

    async def _ask(self, asked: _Asked) -> list[ClaimVerdict]:
        """No verdict if the model does not answer in its form."""
        body, text, is_chat = self._form.body(asked), "", self._form.path == PATH
        if is_chat:
            body |= {"model": self.model, "temperature": 0.0}
            if self.system is not None:
                others = [message for message in body["messages"] if message["role"] != "system"]
                body["messages"] = [{"role": "system", "content": self.system}, *others]
        reply = await self._endpoint.post(
            lambda taken: taken.kept(body), [asked.question, *asked.contexts, *asked.texts]
        )
        if is_chat:
            completion = read_completions(reply)[0]
            report_usage(completion.usage)
            text = completion.text
        try:
            return self._form.read(asked, text, reply)
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            if is_chat:
                return []
            words = "the server's answer holds no spans with scores from 0 to 1"
            raise JudgeError("InvalidResponse", words, outage=True) from None
