"""Citation correctness: do the contexts that a response cites support what they are cited for?"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from ragspan.judges.judge_protocols import ClaimVerdict, ItemJudge, ItemQuestion, Verifier
from ragspan.metrics.evidence import scored_share
from ragspan.metrics.metric import Guide, JudgedMetric, one_each, screen_contexts, screen_response, screen_status
from ragspan.outcomes import NotApplicable, Outcome
from ragspan.records import RagRecord
from ragspan.text.sentences import places_of

_NOUN = r"(?:doc(?:ument)?|source|src|ref(?:erence)?|context|ctx|passage|chunk|result|citation|note|fn)s?[\s:#_.-]{0,2}"
_ONE = rf"(?:{_NOUN})?\d{{1,3}}"
_MARK: Final = re.compile(
    rf"\[\^?\s?(?P<numbers>{_ONE}(?:\s?[,;]\s?{_ONE}){{0,9}})\s?\](?!\()"  # [1], [doc2], [1, 3], [^1]
    rf"|\((?P<named>{_NOUN}\d{{1,3}}(?:\s?[,;]\s?{_ONE}){{0,9}})\)"  # (source 2)
    r"|【(?P<dagger>\d{1,3})[^】\n]{0,80}】"  # of OpenAI's assistants
    r"|\[(?P<id>[A-Za-z][\w./-]{1,60}\d[\w./-]{0,20}|[\w-]{1,60}\.\w{2,5})\](?!\()"  # [handbook-7], [prices.pdf]
    r"|(?<!\d)(?<!\d[kcmdµn]m)(?<!\b[kcmdµn]m)(?<!\bm)(?P<raised>[\u2070\u00b9\u00b2\u00b3\u2074-\u2079]{1,3})(?!\w)"  # not a power: m²
    r"|\^(?P<caret>\d{1,2})\b",
    re.IGNORECASE,
)
_SUPERSCRIPTS: Final = str.maketrans("\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079", "0123456789")
_SOURCE_LINE: Final = re.compile(
    r"^\s*(?:\[\^?\w{1,20}\]:?\s*(?:https?://\S+|[^.!?\[\n]{1,120}(?:\.\w{2,5})?)|\d{1,3}[.)]\s*https?://\S+)$",
    re.MULTILINE,
)
"""A line of a list of sources: it cites nothing."""
_QUESTION: Final = """\
each item names a context by its number and quotes a sentence of the response that cites it. Does that context alone support what it is \
cited for? "supported": the context states the sentence, or a part of it. "unsupported": it contradicts the sentence, or says nothing of \
it. "unsure": it is cut short, garbled or ambiguous just where it would decide."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Citation:
    """One mark of a response."""

    mark: str
    sentence: str
    """Which it stands in or after, without marks."""
    context: int | None
    """0-based, into the record's contexts; None if there is no such context."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CitationCorrectness(JudgedMetric[Verifier]):
    """The share of a response's citations whose context supports the sentence that cites it, 0..1.

    Citations are marks such as [1], [doc2], (source 3), [^1], superscripts, and ids of contexts in brackets; a number is the place of a
    context, from 1. A citation of a context that is not there is not correct. Without citations the metric does not apply
    (`no_citations`). If citations that the judge is not sure of decide, it cannot tell.

    Source: citation precision in ALCE (Gao et al. 2023, arXiv 2305.14627), with partial support counting.
    """

    threshold: float = 0.8
    """Values from here on pass, 0..1."""
    name = "citation_correctness"
    guide = Guide(
        "Do the cited contexts support what they are cited for?",
        "read the sentences that the explanation names. The model may number the contexts otherwise than the prompt does, or cite"
        " from memory.",
    )
    questions = ("verify_claims",)
    screens = (screen_status, screen_response, screen_contexts)

    def asks(self, record: RagRecord) -> Iterable[tuple[str, Any]]:
        question = _question(citations_of(record))
        return [(question.key, question)] if isinstance(self.judge, ItemJudge) and question.items else []

    async def evaluate(self, record: RagRecord) -> Outcome:
        citations = citations_of(record)
        if not citations:
            return NotApplicable(reason="no_citations")
        verdicts = await self._verdicts(record, citations)
        names = [
            f"{citation.mark} after “{citation.sentence[:80]}” ({verdict.explanation})"
            for citation, verdict in zip(citations, verdicts, strict=True)
        ]
        return scored_share(self, record, verdicts, what="citations", names=names)

    async def _verdicts(self, record: RagRecord, citations: Sequence[Citation]) -> list[ClaimVerdict]:
        """One for each citation. A judge that answers no questions of metrics reads each sentence with what it cites alone."""
        known = [citation for citation in citations if citation.context is not None]
        found: list[ClaimVerdict] = []
        if isinstance(self.judge, ItemJudge):
            for one in await self.judge.judge_items(record, _question(citations)) if known else []:
                verdict: Any = one.verdict
                found.append(ClaimVerdict(index=one.index, verdict=verdict, explanation=one.explanation))
        else:
            for at, citation in enumerate(known):
                cited = {one.context for one in known if one.sentence == citation.sentence}
                contexts = tuple(text for place, text in enumerate(record.contexts or ()) if place in cited)
                alone = replace(record, contexts=contexts, background=())
                found += [replace(one, index=at) for one in await self.judge.verify_claims(alone, [citation.sentence])]
        judged = iter(one_each(found, len(known), "citations"))
        return [
            ClaimVerdict(index=at, verdict="unsupported", claim=one.sentence, explanation="there is no such context")
            if one.context is None
            else replace(next(judged), index=at, claim=one.sentence, probability=None)
            for at, one in enumerate(citations)
        ]


def _question(citations: Sequence[Citation]) -> ItemQuestion:
    known = [one for one in citations if one.context is not None]
    items = tuple(f"context {(one.context or 0) + 1}: {one.sentence}" for one in known)
    return ItemQuestion(key="citations", about=_QUESTION, verdicts=("supported", "unsupported", "unsure"), items=items)


def citations_of(record: RagRecord) -> list[Citation]:
    """The citations of a response, each with its sentence, in their order; a number that no context has counts, a word does not."""
    response = _SOURCE_LINE.sub(lambda line: " " * len(line[0]), record.response or "")
    ids = {context.id: at for at, context in reversed(list(enumerate(record.contexts or ()))) if context.id}
    marks = list(_MARK.finditer(response))
    named = [
        [mark["id"]] if mark["id"] else re.findall(r"\d+", mark[0].translate(_SUPERSCRIPTS).partition("†")[0])
        for mark in marks
    ]
    first = 0 if any("0" in keys for keys in named) else 1
    found = []
    for mark, keys in zip(marks, named, strict=True):
        places = dict.fromkeys(
            ids.get(key, at if key.isdigit() and 0 <= (at := int(key) - first) < len(record.contexts or ()) else None)
            for key in keys
        )
        sentence = _sentence_before(mark, response)
        found += [Citation(mark=mark[0], sentence=sentence, context=place) for place in places if sentence]
    return [one for one in found if one.context is not None or re.search(r"\d", one.mark)]


def _sentence_before(mark: re.Match[str], text: str) -> str:
    """The sentence that a mark ends or stands in; where only marks are before it in its sentence, the one before."""
    for start, end in reversed([(start, end) for start, end in places_of(text) if start <= mark.start()]):
        if _MARK.sub("", text[start : min(end, mark.start())]).strip(" .,;"):
            words = " ".join(_MARK.sub("", text[start:end]).split())
            return re.sub(r" (?=[.,;:!?])", "", words)
    return ""
