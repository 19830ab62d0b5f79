"""Makes the step that a span is, whatever its convention."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ragspan.request import NO_INPUT_YET, FilledPrompt, ModelStep, PayloadMessage, SearchStep, Step, ToolStep
from ragspan.safe_copy import OPAQUE
from ragspan_receiver.readers import attribute_names as names
from ragspan_receiver.readers.attribute_names import Convention, Kind
from ragspan_receiver.readers.payloads import Payloads, Scored, fields_of, first_of, json_of, numbered, text_of
from ragspan_receiver.spans import TracedSpan

_EVALUATION = ("evaluator", "evaluator.evaluate", "evaluator.aevaluate")
_STREAMS = (("response_txt", "source_nodes"), ("response", "achat_stream"))
"""LlamaIndex's streams before they were read."""
_CALLED = frozenset({"args", "kwargs"})


@dataclass(kw_only=True, slots=True, eq=False)
class ReadSpan:
    """A span with its step, and what it says beside."""

    span: TracedSpan
    chain: Step
    """The span as a chain, which it is unless its step is of another kind."""
    step: Step = field(init=False)
    outer: ReadSpan | None = None
    """The span of the step around it; known once its request is."""
    framework: str
    kind: Kind
    """What it said that it is, whatever its step turned out to be."""
    metadata: Mapping[str, Any]
    shows_prompt: bool = False
    """Whether a model's prompt stands there as messages, not only in what a function was called with."""

    def __post_init__(self) -> None:
        self.step = self.chain

    def become(self, kind: type[Step], **about: Any) -> None:
        self.step = kind(name=self.chain.name, parent=None, started_ns=self.span.start_ns, **about)

    @property
    def model(self) -> ModelStep | None:
        return self.step if isinstance(self.step, ModelStep) else None

    @property
    def found(self) -> Sequence[Any] | None:
        """The documents that a search found, with their scores; None if their texts are not known."""
        is_one = isinstance(self.step, SearchStep) and isinstance(self.step.output, list)
        return self.step.output if is_one else None

    @property
    def is_bare(self) -> bool:
        """Whether it answers nothing by itself."""
        return isinstance(self.step, (ModelStep, SearchStep, ToolStep))

    def around(self) -> Iterator[ReadSpan]:
        """The spans of the steps around it, the innermost first."""
        read = self.outer
        while read is not None:
            yield read
            read = read.outer

    def is_in_search(self) -> bool:
        return any(isinstance(read.step, SearchStep) for read in self.around())


def read(span: TracedSpan, convention: Convention, payloads: Payloads) -> ReadSpan | None:
    """The step that a span shows; None if it shows none."""
    about = span.attributes
    framework = convention.framework or span.scope.rpartition(".")[2].replace("llamaindex", "llama_index")
    if any(key.startswith("langfuse.observation.metadata.") for key in about):
        framework = "langchain"  # Langfuse's handler
    name = (text_of(about, names.NAME) or "").removesuffix(".task").removesuffix(".workflow")
    is_method = framework in {"llama_index", "dspy"}  # OpenInference names these by a class or tool and its method
    name = name or (span.name.partition(".")[0] if is_method else span.name)
    kind = _kind_of(span, convention, name)
    if kind is None:
        return None
    given, gave = first_of(about, names.GIVEN), first_of(about, names.GAVE)
    if convention in names.WRAPPING:
        given, gave = _unwrapped(given, "input", gave), _unwrapped(gave, "output")
    given = _arguments_in(given)
    inputs, output = payloads.read(given), payloads.read(gave)
    chain = Step(name=name, parent=None, started_ns=span.start_ns, inputs=inputs, output=output)
    starting = [(one, key) for one in names.METADATA_PREFIXES for key in about if key.startswith(one)]
    metadata = {key.removeprefix(one): about[key] for one, key in starting}
    metadata |= fields_of(about.get("metadata"))
    read = ReadSpan(span=span, chain=chain, kind=kind, framework=framework, metadata=metadata)
    if kind == "model":
        _read_model(read, payloads, given, gave)
    elif kind == "retriever":
        _read_search(read, payloads, gave)
    elif kind == "tool":
        if isinstance(output, dict) and isinstance(output.get("blocks"), list):  # LlamaIndex's
            output = "\n".join(text_of(block, ["text"]) or "" for block in output["blocks"] if isinstance(block, dict))
        call_id = text_of(about, names.CALL_ID) or getattr(output, "call_id", None)
        read.become(ToolStep, inputs=inputs, output=output, call_id=call_id)
    else:
        _read_chain(read, payloads, gave)
    return read


def _kind_of(span: TracedSpan, convention: Convention, name: str) -> Kind | None:
    (kind, _), task = convention.kind_of(span.attributes), span.attributes.get("traceloop.span.kind")
    if kind == "agent" and "llm.invocation_parameters" in span.attributes:
        return "model"  # OpenInference takes a LangChain model with such a name for an agent
    if kind == "agent" and task in {"workflow", "task"}:
        kind = "chain"  # Traceloop calls every outermost chain an agent
    if kind != "chain":
        return kind
    lowered = (span.name if task is None else name).lower()
    if lowered.endswith(_EVALUATION):
        return "ignored"
    if task is None:
        return kind
    return None if "embedding" in lowered else "retriever" if lowered.endswith("retriever") else kind


def _unwrapped(value: Any, side: str, gave: Any = None) -> Any:
    """What Traceloop and LangSmith write a step's inputs or output around; a stream's inputs come with its end."""
    data, later = json_of(value), fields_of(fields_of(gave).get("kwargs"))
    if not isinstance(data, dict):
        return value
    key = next(
        (key for key in (f"{side}s", f"{side}_str") if key in data),
        side if {side} <= data.keys() <= {side, "kwargs"} else None,
    )
    own = data if key is None else data[key]
    return later.get("inputs", own) if own == NO_INPUT_YET else own


def _arguments_in(given: Any) -> Any:
    """What a Python function was called with, if this is its `args` and `kwargs`: its only text, or its arguments."""
    data = fields_of(given)
    if not data or not (data.keys() <= _CALLED or data.keys() >= _CALLED):
        return given
    named, others = data.get("kwargs"), data.get("args")
    only = others[0] if isinstance(others, list) and len(others) == 1 else None
    return only if isinstance(only, str) else named or only or others


def _query_in(inputs: Any) -> str | None:
    """What was searched with: a text, or the field with such a name in what a search was called with."""
    if isinstance(inputs, dict):
        inner = inputs.get("query_bundle", inputs.get("str_or_query_bundle", inputs))
        inputs = inner.get("query_str", inner.get("query")) if isinstance(inner, dict) else inner
    return inputs if isinstance(inputs, str) else None


def _prompt(span: TracedSpan, payloads: Payloads) -> list[PayloadMessage]:
    """The system's instructions and the messages that a model or an agent was given."""
    system = payloads.message({"parts": json_of(span.attributes.get(names.SYSTEM))}, "system")
    return [system] * bool(system.prompt_text) + payloads.messages_at(span, names.PROMPT)


def _read_model(read: ReadSpan, payloads: Payloads, given: Any, gave: Any) -> None:
    about = read.span.attributes
    messages = payloads.prompt_in(given) if json_of(given) is not None and read.framework == "langchain" else []
    replies = payloads.messages_at(read.span, names.REPLY, "assistant")
    reply = PayloadMessage("ai", replies[0].content, replies[0].calls) if replies else payloads.reply_in(gave)
    if calls := json_of(about.get(names.REPLY_CALLS)):
        reply = payloads.message({"content": "" if reply is None else reply.text, "tool_calls": calls}, "ai")
    model, reason = text_of(about, names.MODEL), first_of(about, names.FINISH_REASON)
    messages = messages or _prompt(read.span, payloads)
    read.shows_prompt = bool(messages)
    read.become(
        ModelStep,
        inputs=messages or payloads.prompt_in(given),
        reply=reply,
        model=None if model == "unknown" else model,
        provider=text_of(about, names.PROVIDER),
        provider_metadata=[{"finish_reason": next(iter(reason), None) if isinstance(reason, list) else reason}],
    )


def _read_search(read: ReadSpan, payloads: Payloads, gave: Any) -> None:
    about, output = read.span.attributes, json_of(gave)
    output = output.get("documents") if isinstance(output, dict) else output
    listed = json_of(first_of(about, names.FOUND))
    found = payloads.documents_in(output) if isinstance(output, list) else []
    for values in (listed, *(numbered(about, name) for name in names.FOUND), output):
        found = found or (payloads.documents_in(values, loosely=True) if isinstance(values, list) else [])
    shown = found if found or [] in (listed, output) else None
    become_search(read, text_of(about, names.QUERY) or _query_in(read.chain.inputs), shown)


def become_search(read: ReadSpan, query: str | None, found: Sequence[Scored] | None) -> None:
    """Make the step a search; `found` is None if the texts that it found are not known."""
    output = OPAQUE if found is None else [list(pair) for pair in found]
    metadata = {"data_source_id": text_of(read.span.attributes, [names.DATA_SOURCE])}
    read.become(SearchStep, inputs=query, output=output, metadata=metadata)


def _read_chain(read: ReadSpan, payloads: Payloads, gave: Any) -> None:
    """A chain, a workflow or an agent; or a task of LlamaIndex, whose payloads show its kind."""
    chain, data = read.chain, json_of(gave)
    inputs, output = chain.inputs, chain.output
    query, found = _query_in(inputs), payloads.documents_in(data) if isinstance(data, list) else []
    if query and found:
        if not (isinstance(inputs, dict) and "nodes" in inputs):  # as a postprocessor is called
            become_search(read, query, found)
    elif isinstance(data, dict) and {"text", "logprobs"} <= data.keys() and isinstance(inputs, str):
        said = PayloadMessage("ai", text_of(data, ["text"]) or "")
        read.become(ModelStep, inputs=[PayloadMessage("human", inputs)], reply=said)
    elif read.framework == "langchain" and chain.name.endswith("PromptTemplate"):
        chain.output = FilledPrompt(payloads.prompt_in(gave) or [text_of(fields_of(gave), ["text"]) or ""])
    else:
        if isinstance(output, dict):
            streams = (output[key] for key, other in _STREAMS if {key, other} <= output.keys())
            chain.output = next(streams, output) or OPAQUE
        if isinstance(inputs, dict) and "init_state" in inputs:
            chain.inputs = OPAQUE  # a workflow's state before it began, without the question
        asked = _prompt(read.span, payloads)
        if chain.inputs is OPAQUE and any(part.role != "system" for part in asked):
            # OpenTelemetry's own instrumentation of LangChain writes a state as a text.
            state = payloads.read(asked[-1].text)
            chain.inputs = state if isinstance(state, dict) else asked
        if chain.output is OPAQUE and (replies := payloads.messages_at(read.span, names.REPLY, "assistant")):
            chain.output = PayloadMessage("ai", replies[-1].content, replies[-1].calls)
