"""Which spans of a trace belong to one request."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from ragspan_otlp.readers.requests import Request
from ragspan_otlp.readers.steps import Placed, Step
from ragspan_otlp.traces import TracedSpan

_MAX_STEPS = 2000
_MAX_DEPTH = 100
_BARE = frozenset({"model", "retriever", "reranker", "tool"})


class Tree:
    """The steps of a trace, by what is around them; spans that are no steps do not count.

    Args:
        spans: of one trace.
        steps: those that some convention's reader knows, by span id.
    """

    def __init__(self, spans: Sequence[TracedSpan], steps: Mapping[str, Step]) -> None:
        self._spans = {span.span_id: span for span in spans}
        self._steps = steps
        self._tops: dict[str, tuple[str | None, str | None]] = {}
        self._inside: dict[str, list[Step]] = defaultdict(list)
        self._roots: list[Step] = []
        for step in sorted(steps.values(), key=lambda step: step.span.start_ns):
            around, _ = self._around(step.span)
            (self._roots if around is None else self._inside[around]).append(step)

    def requests(self) -> Iterator[Request]:
        """One request a root; those roots that answer nothing by themselves make one together, under the span around them.

        Such are the calls of models and the searches that a program makes one by one.
        """
        bare: dict[str, list[Step]] = defaultdict(list)
        for root in self._roots:
            if root.kind in _BARE:
                bare[self._around(root.span)[1] or root.span.span_id].append(root)
            elif root.kind != "ignored":
                yield Request(self._places([root]))
        for top, roots in bare.items():
            span = self._spans.get(top, roots[0].span) if len(roots) > 1 else None
            yield Request(self._places(roots), span)

    def _places(self, roots: Sequence[Step]) -> list[Placed]:
        """The steps below these roots, and the roots; of very many the last, which made the answer, without chains."""
        places = self._walk(roots, without_chains=False)
        if len(places) <= _MAX_STEPS:
            return places
        first, *others = self._walk(roots, without_chains=True)
        kept = [first, *others[-_MAX_STEPS + 1 :]]
        known = set(map(id, kept))
        for place in kept:
            if place.outer is not None and id(place.outer) not in known:
                place.outer = first
        return kept

    def _walk(self, roots: Sequence[Step], *, without_chains: bool) -> list[Placed]:
        places: list[Placed] = []
        waiting: list[tuple[Step, Placed | None]] = [(root, None) for root in reversed(roots)]
        while waiting:
            step, outer = waiting.pop()
            if step.kind == "ignored":
                continue
            place = outer
            if outer is None or not (without_chains and step.kind == "chain"):
                place = Placed(step=step, outer=outer, depth=0 if outer is None else outer.depth + 1)
                places.append(place)
                if place.depth >= _MAX_DEPTH:
                    place = outer
            waiting += [(inner, place) for inner in reversed(self._inside[step.span.span_id])]
        return places

    def _around(self, span: TracedSpan) -> tuple[str | None, str | None]:
        """The id of the step around a span, and else that of the outermost span around it, which may be missing."""
        passed: list[str] = []
        found: tuple[str | None, str | None] = (None, None)
        own, parent = span.span_id, span.parent_id
        while parent is not None and parent != own:
            if parent in self._tops:
                found = self._tops[parent]
                break
            if parent in self._steps:
                found = (parent, None)
                break
            found = (None, parent)
            if parent not in self._spans or parent in passed:
                break
            passed.append(parent)
            own, parent = parent, self._spans[parent].parent_id
        self._tops.update(dict.fromkeys(passed, found))
        return found
