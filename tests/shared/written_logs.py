"""Logs of requests, written event by event as LangChain's handler notes them; they are folded without a framework."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, ClassVar

from captures import Answered

from ragspan.capturing.log import EventKind, RequestLog, RunKey, TokenStream
from ragspan.messages import note_error
from ragspan.records import RagRecord
from ragspan.request import ModelStep, SearchStep, StepStart, ToolStep, record_of_log
from ragspan.request.contents import Call, Document, FilledPrompt, PayloadMessage
from ragspan.safe_copy import Snapshot

QUESTION = "How long is the warranty on the pump?"
ANSWER = "It runs for three years."
PUMP = "The pump carries a warranty of three years from the date of purchase."
FILTER = "Filters are rinsed by hand once a month and dried in the shade."
MOTOR = "The motor draws four hundred watts at full load."
HOSE = "Spare hoses are ordered through the service desk in Lyon."


def documents(*texts: str) -> list[Document]:
    return [Document(text, f"doc-{place}", {}) for place, text in enumerate(texts)]


def calls(*arguments: Snapshot) -> PayloadMessage:
    """A model's message that calls a tool with each of these arguments."""
    return PayloadMessage("ai", calls=[Call("tool", str(place), given) for place, given in enumerate(arguments)])


class WrittenLog:
    """The log of a request; each method writes the start and the end of a run inside the root."""

    made: ClassVar[list[RagRecord]] = []
    """The records of all logs, for those who look at them whole."""

    def __init__(self, inputs: Snapshot = QUESTION) -> None:
        self.log = RequestLog(record_of_log)
        self.log.root = 0
        self._keys = itertools.count(1)
        self.log.note(EventKind.START, 0, None, inputs, "program")

    def searches(self, *texts: str, query: str = QUESTION) -> None:
        found = documents(*texts)
        self._run(query, found, StepStart(SearchStep, "search"))

    def uses(self, result: Snapshot, given: Snapshot = None, call_id: str | None = "0") -> None:
        """A tool is called and returns something."""
        self._run(given or {}, result, StepStart(ToolStep, "tool", {"call_id": call_id}))

    def fills(self, given: Snapshot, *messages: PayloadMessage) -> tuple[PayloadMessage, ...]:
        """A prompt template gives out messages."""
        self._run(given, FilledPrompt(messages), "ChatPromptTemplate")
        return messages

    def steps(self, inputs: Snapshot, output: Snapshot, name: str = "step") -> None:
        self._run(inputs, output, name)

    def calls_tool(self, name: str, arguments: Snapshot, result: Snapshot) -> None:
        self._run(arguments, result, StepStart(ToolStep, name, {"call_id": "call-1"}))

    def says(self, reply: str | PayloadMessage, prompt: str | Sequence[PayloadMessage] = "Say something.") -> None:
        """A model is called and replies."""
        given = [prompt] if isinstance(prompt, str) else list(prompt)
        self._run(
            given,
            reply if isinstance(reply, PayloadMessage) else PayloadMessage("ai", reply),
            StepStart(ModelStep, "model"),
            told=(),
        )

    def notes(self, kind: str, payload: Any, about: Any = None) -> None:
        """Something else happens in the root."""
        self.log.note(EventKind[kind], 0, None, payload, about)

    def fails(self, prompt: str, *tokens: str) -> None:
        """A model is called, says something and raises an error."""
        key: RunKey = next(self._keys)
        self.log.note(EventKind.START, key, 0, [prompt], StepStart(ModelStep, "model"))
        self.log.streams[key] = TokenStream()
        self.log.streams[key].tokens += tokens
        self.log.note(EventKind.ERROR, key, None, note_error(RuntimeError("down")))

    def ends(self, output: Snapshot, late: Snapshot = None) -> RagRecord | None:
        """The record, once the request has ended with this output; a stream's real input comes then."""
        self.log.note(EventKind.END, 0, None, output, late)
        self.log.over = True
        record = self.log.to_record()
        self.made += [record] if record else []
        return record

    def answers(self, output: Snapshot) -> Answered:
        record = self.ends(output)
        assert record is not None
        return Answered.of(record)

    def _run(self, given: Snapshot, output: Snapshot, about: Any, *, told: Any = None) -> None:
        key: RunKey = next(self._keys)
        self.log.note(EventKind.START, key, 0, given, about)
        self.log.note(EventKind.END, key, None, output, told)
