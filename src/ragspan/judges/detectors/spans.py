"""Span classifiers behind an HTTP server: they mark the parts of a response that the contexts do not support."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate

import msgspec

from ragspan.arguments import TEXT
from ragspan.exceptions import JudgeError
from ragspan.judges.base import ClaimVerdict
from ragspan.judges.detectors.base import Detector, ReferencePair
from ragspan.judges.endpoint import Endpoint
from ragspan.records import RagRecord

_PATH = "/v1/lettucedetect/spans"
_BETWEEN = " "


class SpanDetector(Detector):
    """Asks a span classifier behind LettuceDetect's own server (`POST /v1/lettucedetect/spans`).

    One request checks all claims of a record, which are sent as one text. Each claim that a marked span touches is
    unsupported; the probability that the contexts support it is one minus the span's score. A claim without a span is
    supported and has no probability, because the server gives none.

    It pickles. The server cuts what is longer than its model's window (4,096 or 8,192 tokens) and does not say so.

    Checked against a scripted server that answers as LettuceDetect 0.1.8 documents it, not against its weights.

    Source: LettuceDetect (Kovács and Recski 2025, arXiv 2502.17125).

    Args:
        base_url: the server's, such as `http://localhost:8000`.
        name: the judge's name in every score; give each model its own.
        languages: ISO 639-1 codes that the served model was trained for; None is any.
        revision: of the served weights, for readers of the scores.
        reference_pairs: pairs for which the server has to give these probabilities before anything is scored.
        api_key: sent as a bearer token, for a server behind a gateway.
        timeout: seconds for one attempt.
        max_retries: further attempts after rate limits, timeouts, and errors of the server or the connection.

    Raises:
        ConfigurationError: an argument is wrong.
    """

    def __init__(
        self,
        base_url: str,
        *,
        name: str = "lettucedetect",
        languages: frozenset[str] | None = frozenset({"en"}),
        revision: str | None = None,
        reference_pairs: Sequence[ReferencePair] = (),
        api_key: str | None = None,
        timeout: float = 30.0,
        max_retries: int = 2,
    ) -> None:
        TEXT.check("name", name)
        self.name = name
        self.languages = languages
        self.revision = revision
        self.reference_pairs = tuple(reference_pairs)
        self._endpoint = Endpoint(
            base_url, path=_PATH, api_key=api_key or "no-key", timeout=timeout, max_retries=max_retries
        )

    async def detect(self, record: RagRecord, texts: Sequence[str]) -> list[ClaimVerdict]:
        contexts = [context.text for context in record.contexts or ()]
        question, answer = record.question or "", _BETWEEN.join(texts)
        async with self._endpoint.asking([question, *contexts, answer]) as post:
            reply = await post({"contexts": contexts, "question": question, "answer": answer})
        starts = [0, *accumulate(len(text) + len(_BETWEEN) for text in texts)]
        marked = [verdict for span in _spans(reply) for verdict in _by_text(span, texts, starts)]
        clean = set(range(len(texts))) - {verdict.index for verdict in marked}
        return marked + [
            ClaimVerdict(index=index, supported=True, explanation=f"{self.name} marks nothing in it")
            for index in sorted(clean)
        ]


class _Span(msgspec.Struct):
    start: int
    end: int
    hallucination_score: float


class _Reply(msgspec.Struct):
    predictions: list[_Span]


def _spans(reply: object) -> list[_Span]:
    try:
        spans = msgspec.convert(reply, _Reply).predictions
    except msgspec.ValidationError as error:
        raise JudgeError("InvalidResponse", f"the server's answer holds no spans: {error}", outage=True) from None
    if any(not 0 <= span.hallucination_score <= 1 for span in spans):
        raise JudgeError("InvalidResponse", "the server's answer has a score that is not from 0 to 1")
    return spans


def _by_text(span: _Span, texts: Sequence[str], starts: Sequence[int]) -> Iterator[ClaimVerdict]:
    """A verdict for each text that the span touches."""
    for index, (text, start) in enumerate(zip(texts, starts, strict=False)):
        part = text[max(span.start - start, 0) : max(span.end - start, 0)].strip()
        if part:
            yield ClaimVerdict(
                index=index,
                supported=False,
                probability=1 - span.hallucination_score,
                explanation=f'"{part}" is marked as unsupported with a probability of {span.hallucination_score:.2f}',
            )
