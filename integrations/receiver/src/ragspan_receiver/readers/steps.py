"""What readers make of spans, whatever their convention: steps, and which of them belong to one request."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, cast

from ragspan.capturing import OPAQUE
from ragspan.records import SpanAnchor
from ragspan.request import Document, ModelStep, PayloadMessage, RerankStep, SearchStep, SeenDocument, Step, ToolStep
from ragspan_receiver.spans import TracedSpan

Kind: TypeAlias = Literal["chain", "agent", "model", "retriever", "reranker", "tool", "ignored"]
"""What a span says that it is. `ignored` is what serves no answer, with all inside it: an evaluation."""
Scored: TypeAlias = tuple[Document, float | None]
"""A document, with its score if it came with one."""
_MAX_STEPS = 2000
_MAX_DEPTH = 100
_MAX_COMPARED = 100_000_000
_MAX_AROUND = 1000  # spans that are looked through for the step around one


@dataclass(kw_only=True, slots=True, eq=False)
class ReadSpan:
    """A span with its step, which the reader of its convention makes, and what it says beside."""

    span: TracedSpan
    chain: Step
    """The span as a chain, which it is unless its step is of another kind."""
    step: Step = field(init=False)
    outer: ReadSpan | None = None
    """The span of the step around it; known once its request is."""
    framework: str = ""
    kind: Kind = "chain"
    """What it said that it is, whatever its step turned out to be."""
    written: Sequence[str] = ()
    """Documents as a step wrote them for the model, such as with their metadata."""
    made_prompt: Sequence[PayloadMessage] = ()
    """The prompt that a chain filled in for the next model."""
    has_ended: bool = True
    """False for a model of which only the prompt is known, since spans come when they end."""
    tags: Sequence[str] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.step = self.chain

    def become(self, kind: type[Step], **about: Any) -> None:
        """Make it a step of another kind."""
        self.step = kind(name=self.chain.name, parent=None, started_ns=self.span.start_ns, **about)

    def become_search(self, query: str | None, found: Sequence[Scored] | None, **about: Any) -> None:
        """Make it a search; `found` is None if the texts that it found are not known."""
        output = OPAQUE if found is None else [list(pair) for pair in found]
        self.become(SearchStep, inputs=query, output=output, metadata=about, span=anchor_of(self.span))

    def become_reranker(self, given: Sequence[Scored], found: Sequence[Scored] | None, **about: Any) -> None:
        """Make it a reranker; what only filters has another name."""
        output = OPAQUE if found is None else [list(pair) for pair in found]
        was, left = ([SeenDocument(each, None, score) for each, score in pairs] for pairs in (given, found or ()))
        is_filter = "rank" not in self.chain.name.lower()
        self.become(
            RerankStep, inputs=self.chain.inputs, output=output, given=was, found=left, is_filter=is_filter, **about
        )

    @property
    def model(self) -> ModelStep | None:
        """Its step, if that is a call of a model."""
        return self.step if isinstance(self.step, ModelStep) else None

    @property
    def found(self) -> Sequence[Scored] | None:
        """The documents that a search or a reranker gave; None if their texts are not known."""
        is_one = isinstance(self.step, (SearchStep, RerankStep)) and isinstance(self.step.output, list)
        return cast("Sequence[Scored]", self.step.output) if is_one else None

    @property
    def is_bare(self) -> bool:
        """Whether it answers nothing by itself."""
        return isinstance(self.step, (ModelStep, SearchStep, RerankStep, ToolStep))

    def around(self) -> Iterator[ReadSpan]:
        """The spans of the steps around it, the innermost first."""
        read = self.outer
        while read is not None:
            yield read
            read = read.outer

    def is_in_search(self) -> bool:
        return any(isinstance(read.step, SearchStep) for read in self.around())


def anchor_of(span: TracedSpan) -> SpanAnchor | None:
    """The span's identity; None if its ids are not hexadecimal numbers."""
    try:
        trace_id, span_id = int(span.trace_id, 16), int(span.span_id, 16)
    except ValueError:
        return None
    return SpanAnchor(trace_id=trace_id, span_id=span_id, trace_state=span.trace_state, is_remote=True)


def requests_in(
    spans: Sequence[TracedSpan], steps: Mapping[str, ReadSpan]
) -> Iterator[tuple[Sequence[ReadSpan], TracedSpan | None]]:
    """The steps of each request in a trace, each after the one around it; spans that are not steps do not count.

    A root makes a request. The roots that answer nothing by themselves, such as the searches and calls of models that a
    program makes one by one, make one together; the outermost span around them comes with it. They make several if the spans
    below that one are requests that know nothing of one another, as those of a consumer of messages.

    Args:
        spans: of one trace.
        steps: those that some convention's reader knows, by span id.
    """
    by_id = {span.span_id: span for span in spans}
    inside: dict[str, list[ReadSpan]] = defaultdict(list)
    bare: dict[str, list[ReadSpan]] = defaultdict(list)
    for step in sorted(steps.values(), key=lambda step: step.span.start_ns):
        around, top = _around(step.span, by_id, steps)
        if around is not None:
            inside[around].append(step)
        elif step.is_bare:
            bare[top].append(step)
        elif step.kind != "ignored":
            inside[""].append(step)
    for root in inside[""]:
        yield _below([root], inside), None
    for top, roots in bare.items():
        for around, together in _apart(top, roots, by_id, inside):
            yield _below(together, inside), by_id.get(around, together[0].span) if len(together) > 1 else None


def _apart(
    top: str, roots: Sequence[ReadSpan], spans: Mapping[str, TracedSpan], inside: Mapping[str, Sequence[ReadSpan]]
) -> list[tuple[str, Sequence[ReadSpan]]]:
    """The requests below a span, each with the span around it: one, or those below its inner spans."""
    for _ in range(_MAX_DEPTH):
        groups: dict[str, list[ReadSpan]] = defaultdict(list)
        for root in roots:
            groups[_child_of(top, root.span, spans)].append(root)
        if len(groups) != 1 or top in groups:
            break
        (inner,) = groups
        if all(root.span.span_id == inner for root in roots):
            break
        top = inner
    each = [_Group(_below(group, inside)) for group in groups.values()]
    return list(groups.items()) if len(each) > 1 and _are_strangers(each) else [(top, roots)]


def _child_of(top: str, span: TracedSpan, spans: Mapping[str, TracedSpan]) -> str:
    """The id of the span directly below another one that leads to this span."""
    for _ in range(_MAX_AROUND):
        if span.parent_id is None or span.parent_id == top or span.parent_id not in spans:
            break
        span = spans[span.parent_id]
    return span.span_id


class _Group:
    """The prompts of the models among some steps, and the texts of these steps that may stand in other prompts."""

    def __init__(self, steps: Sequence[ReadSpan]) -> None:
        models = [step.model for step in steps if step.model is not None and step.model.messages]
        self.prompts = "\n".join(part.prompt_text for model in models for part in model.messages)
        self.asked = next(
            (part.text for model in models[-1:] for part in model.messages[::-1] if part.role == "human"), ""
        )
        said = [model.said.strip() for model in models]
        found = [document.text for step in steps for document, _ in step.found or ()]
        self.texts = frozenset(text for text in [*said, *found] if " " in text)
        self.is_whole = bool(models) and any(isinstance(step.step, (SearchStep, ToolStep)) for step in steps)


def _are_strangers(groups: Sequence[_Group]) -> bool:
    """Whether each group has searched and answered by itself, another question each, and its prompts hold nothing of the others."""
    texts = [(group, text) for group in groups for text in group.texts]
    if not all(group.is_whole for group in groups) or len({group.asked for group in groups}) < len(groups):
        return False
    if len(texts) * sum(len(group.prompts) for group in groups) > _MAX_COMPARED:
        return False
    return not any(
        text in group.prompts
        for group in groups
        for other, text in texts
        if other is not group and text not in group.texts
    )


def _around(span: TracedSpan, spans: Mapping[str, TracedSpan], steps: Mapping[str, ReadSpan]) -> tuple[str | None, str]:
    """The id of the step around a span, if any, and that of the outermost span around it, which may be missing."""
    top, parent = span.span_id, span.parent_id
    for _ in range(_MAX_AROUND):  # parents may form a circle
        if parent is None or parent == top:
            break
        if parent in steps:
            return parent, parent
        top = parent
        if parent not in spans:
            break
        parent = spans[parent].parent_id
    return None, top


def _below(roots: Sequence[ReadSpan], inside: Mapping[str, Sequence[ReadSpan]]) -> Sequence[ReadSpan]:
    """The roots and the steps below them; of very many the last, which made the answer."""
    found: list[ReadSpan] = []
    waiting = [(root, 0) for root in reversed(roots)]
    while waiting:
        step, depth = waiting.pop()
        if step.kind != "ignored":
            found.append(step)
            outer = step if depth < _MAX_DEPTH else step.outer
            for inner in reversed(inside.get(step.span.span_id, ())):
                inner.outer = outer
                waiting.append((inner, min(depth + 1, _MAX_DEPTH)))
    if len(found) <= _MAX_STEPS:
        return found
    kept = [found[0], *found[-_MAX_STEPS + 1 :]]
    known = set(map(id, kept))
    for step in kept[1:]:
        if step.outer is not None and id(step.outer) not in known:
            step.outer = found[0]
    return kept
