"""The contexts of an answer, with what the metrics found of each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ragspan.datasets.report.legible import Excerpt, excerpts
from ragspan.judges.base import ContextVerdict
from ragspan.metrics import ChunkAttribution, ChunkUtilization, ContextRelevance, JudgedContext
from ragspan.outcomes import Outcome, Score
from ragspan.records import RetrievedContext

PASSAGES_SHOWN = 20
_AT_ONCE = 500
_LONGEST_NAME = 120


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """What one metric found of one context."""

    words: str
    explanation: str | None = None
    is_useful: bool | None = None
    """Whether the response made use of it; None where the metric tells something else."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownPassage:
    """A context as the report shows it."""

    number: int
    """Its place in the prompt, from 1."""
    name: str | None
    """Where it comes from, or else its id."""
    rank: int | None
    """Its place in the retriever's result, from 1."""
    is_partial: bool
    """The prompt held only a part of it."""
    text: Excerpt
    findings: tuple[Finding, ...] = ()

    @property
    def is_useful(self) -> bool | None:
        """None where no metric told."""
        told = [finding.is_useful for finding in self.findings if finding.is_useful is not None]
        return any(told) if told else None


def show_passages(
    contexts: Sequence[RetrievedContext], outcomes: Mapping[str, Outcome], *, room: int
) -> tuple[ShownPassage, ...]:
    """At most `PASSAGES_SHOWN` contexts in prompt order, with texts of at most `room` characters together.

    Of more contexts those are left out that were not useful, the last ones first.
    """
    findings = _findings(outcomes)
    useful = {index for index, found in findings.items() if any(finding.is_useful for finding in found)}
    chosen = sorted(sorted(range(len(contexts)), key=lambda index: index not in useful)[:PASSAGES_SHOWN])
    texts = excerpts([contexts[index].text for index in chosen], at_once=_AT_ONCE, room=room)
    return tuple(
        _shown(index, contexts[index], text, findings.get(index, ())) for index, text in zip(chosen, texts, strict=True)
    )


def _shown(index: int, context: RetrievedContext, text: Excerpt, findings: Sequence[Finding]) -> ShownPassage:
    name = context.source or context.id
    return ShownPassage(
        number=index + 1,
        name=name[:_LONGEST_NAME] if name else None,
        rank=None if context.rank is None else context.rank + 1,
        is_partial=context.truncated,
        text=text,
        findings=tuple(findings),
    )


def _findings(outcomes: Mapping[str, Outcome]) -> Mapping[int, Sequence[Finding]]:
    by_index: dict[int, list[Finding]] = defaultdict(list)
    for metric, outcome in outcomes.items():
        for index, finding in _of_metric(metric, outcome.evidence if isinstance(outcome, Score) else ()):
            if finding.words not in {known.words for known in by_index[index]}:  # two metrics may ask the same
                by_index[index].append(finding)
    return by_index


def _of_metric(metric: str, evidence: Sequence[object]) -> Iterator[tuple[int, Finding]]:
    for item in evidence:
        if isinstance(item, ContextVerdict):
            yield item.index, _usefulness(item.useful, item.explanation)
        elif isinstance(item, JudgedContext):
            yield item.index, _judged(metric, item)


def _judged(metric: str, passage: JudgedContext) -> Finding:
    if metric == ChunkAttribution.name:
        return _usefulness(passage.value > 0, passage.explanation)
    words = {
        ContextRelevance.name: f"relevance {passage.value:.2f}",
        ChunkUtilization.name: f"{passage.value:.0%} of its text used",
    }
    return Finding(words=words.get(metric, f"{metric} {passage.value:.2f}"), explanation=passage.explanation)


def _usefulness(is_useful: bool, explanation: str | None) -> Finding:  # noqa: FBT001 - the verdict itself
    return Finding(words="useful" if is_useful else "not used", explanation=explanation, is_useful=is_useful)
