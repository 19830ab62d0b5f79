"""Span classifiers behind an HTTP server: they mark the parts of a response that the contexts do not support."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import msgspec

from ragspan.arguments import TEXT
from ragspan.exceptions import JudgeError
from ragspan.judges.detectors.detector import ServedDetector
from ragspan.judges.endpoint import TIMEOUT
from ragspan.judges.judge_protocols import ClaimVerdict
from ragspan.records import RagRecord

_PATH = "/v1/lettucedetect/spans"
_BETWEEN = " "


@dataclass(kw_only=True, eq=False, repr=False)
class SpanDetector(ServedDetector):
    """Asks a span classifier behind LettuceDetect's own server (`POST /v1/lettucedetect/spans`).

    One request checks all claims of a record, which are sent as one text. Each claim that a marked span touches is
    unsupported; the probability that the contexts support it is one minus the span's score. A claim without a span is
    supported and has no probability, because the server gives none.

    The server cuts what is longer than its model's window (4,096 or 8,192 tokens) and does not say so.

    Checked against a scripted server that answers as LettuceDetect 0.1.8 documents it, not against its weights.

    Source: LettuceDetect (Kovács and Recski 2025, arXiv 2502.17125).

    Raises:
        ConfigurationError: an argument is wrong.
    """

    base_url: str = field(kw_only=False)
    """The server's, such as `http://localhost:8000`."""
    name: str = "lettucedetect"
    timeout: float = TIMEOUT

    def __post_init__(self) -> None:
        TEXT.check_fields(self, "name")
        self._aim(self.base_url, _PATH)

    async def detect(self, record: RagRecord, texts: Sequence[str]) -> list[ClaimVerdict]:
        contexts = [context.text for context in record.contexts or ()]
        question, answer = record.question or "", _BETWEEN.join(texts)
        async with self._endpoint.asking([question, *contexts, answer]) as post:
            reply = await post({"contexts": contexts, "question": question, "answer": answer})
        starts = [0, *accumulate(len(text) + len(_BETWEEN) for text in texts)]
        marked = [verdict for span in _spans(reply) for verdict in _by_text(span, texts, starts)]
        clean = set(range(len(texts))) - {verdict.index for verdict in marked}
        return marked + [
            ClaimVerdict(index=index, verdict="supported", explanation=f"{self.name} marks nothing in it")
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
                verdict="unsupported",
                probability=1 - span.hallucination_score,
                explanation=f'"{part}" is marked as unsupported with a probability of {span.hallucination_score:.2f}',
            )
