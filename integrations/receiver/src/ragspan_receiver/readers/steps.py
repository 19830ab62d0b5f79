"""What readers make of spans, whatever their convention: steps, and which of them belong to one request."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from ragspan.records import SpanAnchor
from ragspan.request import Document, ModelStep, PayloadMessage, RerankStep, SearchStep, SeenDocument, Step, ToolStep
from ragspan.safe_copy import OPAQUE
from ragspan_receiver.spans import TracedSpan

Kind: TypeAlias = Literal["chain", "agent", "model", "retriever", "reranker", "tool", "ignored"]
"""What a span says that it is. `ignored` is what serves no answer, with all inside it: an evaluation."""
Scored: TypeAlias = tuple[Document, float | None]
"""A document, with its score if it came with one."""
_MAX_STEPS = 2000
_MAX_AROUND = 1000  # spans that are looked through for the step around one
_MAX_COMPARED = 100_000_000


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
    """Documents as a step was given them as texts."""
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
        inputs = self.chain.inputs
        self.become(RerankStep, inputs=inputs, output=output, given=was, found=left, is_filter=is_filter, **about)

    @property
    def model(self) -> ModelStep | None:
        """Its step, if that is a call of a model."""
        return self.step if isinstance(self.step, ModelStep) else None

    @property
    def found(self) -> Sequence[Any] | None:
        """The documents that a search or a reranker gave, with their scores; None if their texts are not known."""
        is_one = isinstance(self.step, (SearchStep, RerankStep)) and isinstance(self.step.output, list)
        return self.step.output if is_one else None

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
    roots: list[ReadSpan] = []
    for step in sorted(steps.values(), key=lambda step: step.span.start_ns):
        path = _path_up(step.span, by_id, until=steps)
        if len(path) > 1 and path[-1] in steps:
            inside[path[-1]].append(step)
        elif step.is_bare:
            bare[path[-1]].append(step)
        elif step.kind != "ignored":
            roots.append(step)
    for root in roots:
        yield _below([root], inside), None
    for top, together in bare.items():
        for around, group in _apart(top, together, by_id, inside):
            yield _below(group, inside), by_id.get(around, group[0].span) if len(group) > 1 else None


def _path_up(span: TracedSpan, spans: Mapping[str, TracedSpan], *, until: Container[str] = ()) -> list[str]:
    """The ids of a span and of those around it, the innermost first, to the first one in `until`; the last may be missing."""
    path = {span.span_id: None}  # parents may form a circle
    while span.parent_id is not None and span.parent_id not in path and len(path) < _MAX_AROUND:
        path[span.parent_id] = None
        if span.parent_id in until or span.parent_id not in spans:
            break
        span = spans[span.parent_id]
    return list(path)


def _apart(
    top: str, roots: Sequence[ReadSpan], spans: Mapping[str, TracedSpan], inside: Mapping[str, Sequence[ReadSpan]]
) -> Sequence[tuple[str, Sequence[ReadSpan]]]:
    """The requests below a span, each with the span around it: one, or those below the first spans where they part."""
    paths = [_path_up(root.span, spans)[::-1] for root in roots]  # from the outermost
    depth = 0
    while depth < min(map(len, paths)) and len({path[depth] for path in paths}) == 1:
        depth += 1
    groups: dict[str, list[ReadSpan]] = defaultdict(list)
    for root, path in zip(roots, paths, strict=True):
        groups[path[min(depth, len(path) - 1)]].append(root)
    if len(groups) > 1 and _are_strangers([_below(group, inside) for group in groups.values()]):
        return list(groups.items())
    return [(paths[0][depth - 1] if depth else top, roots)]


def _are_strangers(groups: Sequence[Sequence[ReadSpan]]) -> bool:
    """Whether each group has searched and answered by itself, another question each, and its prompts hold nothing of the others."""
    prompts, texts, questions = [], [], set()
    for group in groups:
        models = [step.model for step in group if step.model is not None and step.model.messages]
        if not models or not any(isinstance(step.step, (SearchStep, ToolStep)) for step in group):
            return False
        prompts.append("\n".join(part.prompt_text for model in models for part in model.messages))
        questions.add(next((part.text for part in models[-1].messages[::-1] if part.role == "human"), ""))
        found = [document.text for step in group for document, _ in step.found or ()]
        texts.append({text for text in [*(model.said.strip() for model in models), *found] if " " in text})
    if len(questions) < len(groups) or sum(map(len, texts)) * sum(map(len, prompts)) > _MAX_COMPARED:
        return False
    return not any(
        text in prompt
        for own, prompt in zip(texts, prompts, strict=True)
        for others in texts
        if others is not own
        for text in others - own
    )


def _below(roots: Sequence[ReadSpan], inside: Mapping[str, Sequence[ReadSpan]]) -> Sequence[ReadSpan]:
    """The roots and the steps below them; of very many the last, which made the answer."""
    found: list[ReadSpan] = []
    waiting = list(reversed(roots))
    while waiting:
        step = waiting.pop()
        if step.kind != "ignored":
            found.append(step)
            for inner in reversed(inside.get(step.span.span_id, ())):
                inner.outer = step
                waiting.append(inner)
    if len(found) > _MAX_STEPS:
        found = [found[0], *found[-_MAX_STEPS + 1 :]]
        kept = set(map(id, found))
        for step in found[1:]:
            if step.outer is not None and id(step.outer) not in kept:
                step.outer = found[0]
    return found
