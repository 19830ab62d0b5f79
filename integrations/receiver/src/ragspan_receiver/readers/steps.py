"""What readers make of spans, whatever their convention: steps, and which of them belong to one request."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from ragspan.capturing import OPAQUE, Snapshot
from ragspan.runs import Document, PayloadMessage
from ragspan_receiver.spans import TracedSpan

Kind: TypeAlias = Literal["chain", "agent", "model", "retriever", "reranker", "tool", "ignored"]
Scored: TypeAlias = tuple[Document, float | None]
"""A document, with its score if it came with one."""
BARE = frozenset({"model", "retriever", "reranker", "tool"})
"""Kinds of steps that answer nothing by themselves."""
_MAX_STEPS = 2000
_MAX_DEPTH = 100
_MAX_COMPARED = 100_000_000
_MAX_AROUND = 1000  # spans that are looked through for the step around one


@dataclass(kw_only=True, slots=True, eq=False)
class SpanStep:
    """A span as a step of an answer. The reader of its convention fills in what it knows."""

    span: TracedSpan
    kind: Kind
    """`ignored` is what serves no answer, with all inside it: an evaluation."""
    name: str
    outer: SpanStep | None = None
    """The step around it; known once its request is."""
    framework: str = ""
    shows_models: bool = False
    """The instrumentation shows every call of a model; without such a span, no model was called."""
    inputs: Snapshot = OPAQUE
    """What a chain, an agent or a tool was called with; opaque if the span does not say."""
    output: Snapshot = OPAQUE
    query: str | None = None
    """What a search or a reranker looks for."""
    found: Sequence[Scored] | None = None
    """The documents that a search or a reranker gave; None if their texts are not known."""
    given: Sequence[Scored] = ()
    """The documents that a reranker was given."""
    written: Sequence[str] = ()
    """Documents as a step wrote them for the model, such as with their metadata."""
    prompt: Sequence[PayloadMessage] = ()
    """The messages that a model was given."""
    beside: Snapshot = None
    """Documents that a model was given beside its prompt."""
    reply: PayloadMessage | None = None
    provider_metadata: Mapping[str, Any] = field(default_factory=dict)
    """What the span says about a model's reply, as `ragspan.provider_replies` reads it."""
    made_prompt: Sequence[PayloadMessage] = ()
    """The prompt that a chain filled in for the next model."""
    has_ended: bool = True
    """False for a model of which only the prompt is known, since spans come when they end."""
    model: str | None = None
    provider: str | None = None
    call_id: str | None = None
    """The id of the model's request that a tool answers."""
    top_k: int | None = None
    source: str | None = None
    """What was searched."""
    session_id: str | None = None
    user_id: str | None = None
    tags: Sequence[str] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def around(self) -> Iterator[SpanStep]:
        """The steps around it, the innermost first."""
        step = self.outer
        while step is not None:
            yield step
            step = step.outer

    def is_in(self, kind: Kind) -> bool:
        return any(step.kind == kind for step in self.around())


def requests_in(
    spans: Sequence[TracedSpan], steps: Mapping[str, SpanStep]
) -> Iterator[tuple[Sequence[SpanStep], TracedSpan | None]]:
    """The steps of each request in a trace, each after the one around it; spans that are not steps do not count.

    A root makes a request. The roots that answer nothing by themselves, such as the searches and calls of models that a
    program makes one by one, make one together; the outermost span around them comes with it. They make several if the spans
    below that one are requests that know nothing of one another, as those of a consumer of messages.

    Args:
        spans: of one trace.
        steps: those that some convention's reader knows, by span id.
    """
    by_id = {span.span_id: span for span in spans}
    inside: dict[str, list[SpanStep]] = defaultdict(list)
    bare: dict[str, list[SpanStep]] = defaultdict(list)
    for step in sorted(steps.values(), key=lambda step: step.span.start_ns):
        around, top = _around(step.span, by_id, steps)
        if around is not None:
            inside[around].append(step)
        elif step.kind in BARE:
            bare[top].append(step)
        elif step.kind != "ignored":
            inside[""].append(step)
    for root in inside[""]:
        yield _below([root], inside), None
    for top, roots in bare.items():
        for around, together in _apart(top, roots, by_id, inside):
            yield _below(together, inside), by_id.get(around, together[0].span) if len(together) > 1 else None


def _apart(
    top: str, roots: Sequence[SpanStep], spans: Mapping[str, TracedSpan], inside: Mapping[str, Sequence[SpanStep]]
) -> list[tuple[str, Sequence[SpanStep]]]:
    """The requests below a span, each with the span around it: one, or those below its inner spans."""
    for _ in range(_MAX_DEPTH):
        groups: dict[str, list[SpanStep]] = defaultdict(list)
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

    def __init__(self, steps: Sequence[SpanStep]) -> None:
        models = [step for step in steps if step.kind == "model" and step.prompt]
        self.prompts = "\n".join(part.prompt_text for step in models for part in step.prompt)
        self.asked = next((part.text for step in models[-1:] for part in step.prompt[::-1] if part.role == "human"), "")
        said = [step.reply.text.strip() for step in models if step.reply is not None]
        found = [document.text for step in steps for document, _ in step.found or ()]
        self.texts = frozenset(text for text in [*said, *found] if " " in text)
        self.is_whole = bool(models) and any(step.kind in {"retriever", "tool"} for step in steps)


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


def _around(span: TracedSpan, spans: Mapping[str, TracedSpan], steps: Mapping[str, SpanStep]) -> tuple[str | None, str]:
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


def _below(roots: Sequence[SpanStep], inside: Mapping[str, Sequence[SpanStep]]) -> Sequence[SpanStep]:
    """The roots and the steps below them; of very many the last, which made the answer."""
    found: list[SpanStep] = []
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
