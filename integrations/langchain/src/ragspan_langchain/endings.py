"""How a request ended, and what its caller had got by then."""

from __future__ import annotations

from typing import Any

from ragspan.provider_replies import facts_of
from ragspan.records import AnswerStatus
from ragspan_langchain.answers import response_in
from ragspan_langchain.payloads import text_of
from ragspan_langchain.trace import ModelRun, Run, Trace

_LEFT = {"GeneratorExit", "CancelledError", "KeyboardInterrupt"}
_STOPPED = {"GraphInterrupt", "NodeInterrupt", "GraphDrained"}


def status_and_response(trace: Trace) -> tuple[AnswerStatus, str | None]:
    if trace.error in _STOPPED or _was_interrupted(trace):
        return "interrupted", None
    if trace.error in _LEFT or (trace.error is None and trace.streamed and _was_left_early(trace)):
        received = _received(trace)
        return ("complete" if received is not None and _had_last_token(trace) else "aborted"), received
    if trace.error is not None:
        return "error", _received(trace)
    replies = [run.reply for run in trace.model_runs if run.reply is not None]
    response = response_in(
        trace.output, inputs=trace.inputs, replies=replies, preferred=lambda text: _was_grounded(trace, text)
    )
    return "complete", response


def _was_interrupted(trace: Trace) -> bool:
    """A graph stopped to wait for a person, and no model was called afterwards; its reader may have left at that point."""
    return any(
        (run.error is None or run.error in _LEFT)
        and not any(model.started_ns > run.ended_ns > 0 for model in trace.models)
        for run in trace.interrupted
    )


def _was_left_early(trace: Trace) -> bool:
    """A stream that its reader closed ends as if all were well, but before the runs that feed it."""
    if all(run.ended_ns for run in trace.runs):
        return False
    spoken = {run.reply.text for run in trace.model_runs if run.reply is not None and run.reply.text.strip()}
    fields = trace.output.values() if isinstance(trace.output, dict) else [trace.output]
    return not any(text in spoken for text in fields if isinstance(text, str))


def _received(trace: Trace) -> str | None:
    """What a reader had got when the request ended too early; a caller who waited for the whole had got nothing."""
    if trace.streamed or trace.log.about.get("delivered"):
        model = _speaker(trace)
        if model is None or _was_held_back(model, trace):
            return None
        said = "".join(map(text_of, model.tokens))
        if trace.error is None and isinstance(trace.output, str) and trace.output and not said.startswith(trace.output):
            return trace.output  # a step changed the model's words on their way to the reader
        return said or None
    if trace.error == "GeneratorExit":
        return _last_delivered(trace)
    return None


def _speaker(trace: Trace) -> ModelRun | None:
    """The model whose tokens the reader was getting: the last one, unless a search came after it."""
    models = _called_now(trace)
    if not models:
        return None
    last = models[-1]
    searched = any(run.started_ns > last.ended_ns for run in trace.searches)
    return None if last.ended_ns and searched else last


def _called_now(trace: Trace) -> list[ModelRun]:
    """The calls since the request went on, if it was interrupted before."""
    return [run for run in trace.model_runs if run not in trace.models_before]


def _was_held_back(model: ModelRun, trace: Trace) -> bool:
    """Whether a plain function stood between the model and the reader: it takes all in before it gives anything out.

    Callbacks tell lambdas by name only, so that a function with a name of its own passes for one that streams.
    """
    around = _ancestors(model)
    return any(
        run.name == "RunnableLambda" and run not in around and run.parent in around and (run.error or not run.ended_ns)
        for run in trace.runs
    )


def _last_delivered(trace: Trace) -> str | None:
    """For the reader of a graph's states, who gets what a node said when the node has ended."""
    for model in reversed(_called_now(trace)):
        steps = [run for run in _ancestors(model) if run.parent is not None]
        if model.reply is not None and model.reply.text.strip() and steps and steps[-1].ended_ns:
            return model.reply.text
    return None


def _ancestors(run: Run) -> list[Run]:
    """The runs around a run, the innermost first."""
    around = []
    parent = run.parent
    while parent is not None:
        around.append(parent)
        parent = parent.parent
    return around


def _had_last_token(trace: Trace) -> bool:
    model = _speaker(trace)
    return model is not None and _is_last(model.last_chunk)


def _is_last(chunk: Any) -> bool:
    """Whether a streamed chunk says that it is the last one of its reply."""
    message = getattr(chunk, "message", None)
    if getattr(message, "chunk_position", None) == "last":
        return True
    told = (getattr(message, "response_metadata", None), getattr(chunk, "generation_info", None))
    return facts_of([each for each in told if isinstance(each, dict)]).finish_reason is not None


def _was_grounded(trace: Trace, text: str) -> bool:
    """Whether the model that said this had a document in its prompt, judged quickly."""
    for run in (*trace.models_before, *trace.models):
        if run.reply is not None and run.reply.text == text:
            prompt = "\n".join(part.text for part in run.prompt.parts)
            return any(document[:100] in prompt for document in run.prompt.texts if document)
    return False
