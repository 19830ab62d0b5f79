"""What LlamaIndex says of a step beside what every step has: its nodes, and what makes it an answer. Read in the worker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ragspan.request import Call, Step
from ragspan_llama_index.classes import ClassFacts, Role
from ragspan_llama_index.files import File
from ragspan_llama_index.nodes import NodeSnapshot, Template, text_shown
from ragspan_llama_index.payloads import Asked
from ragspan_llama_index.streams import Stream

_PROVIDERS = "llama_index.llms."


class SeenNode:
    """A node as it passed by."""

    __slots__ = ("_template", "id", "identity", "later_text", "metadata", "score", "text")

    def __init__(self, snapshot: NodeSnapshot) -> None:
        self.identity, self.score, self.id, self.text, self.metadata, self._template = snapshot
        self.later_text = self.text

    def see_later(self, text: str, template: Template | None) -> None:
        """Note what became of it: programs change nodes in place."""
        self.later_text = text
        self._template = self._template or template

    def describes_tool(self) -> bool:
        """Whether it describes a tool among which an agent chooses, and is not a context."""
        return self.text.startswith(f"Tool name: {self.metadata.get('name')}\nTool description: ")

    def text_for_model(self) -> str:
        """The text with metadata and template, as the framework writes it into prompts, where that is known."""
        shown = None if self._template is None else text_shown(self.later_text, self.metadata, self._template)
        return self.text if shown is None else shown


class StepFacts:
    """What the framework says of a step beside what every step has."""

    # Payloads of the log set these.
    asked: Asked = ()
    is_run = False  # of an agent or a workflow
    is_resumed = False  # such a run, which goes on where an earlier one was interrupted
    agent_name: Any = None
    given: Sequence[SeenNode] = ()  # nodes that it works on; of a call, those that its response names
    found: Sequence[SeenNode] | None = None  # nodes that it brought
    texts: Sequence[str] | None = None  # the given nodes as the synthesizer wrote them for the model
    answer: str | Stream | None = None
    said: str | None = None  # of a model inside a synthesis
    result: int | None = None  # the identity of what it returned
    streams = False  # it is a model's, and its words come later, past every span
    tokens: Sequence[str] = ()  # these words, where the model reports them
    asked_for: Sequence[Call] = ()  # the tool calls in a model's reply
    searched = False  # the model's provider searched by itself
    filled: Sequence[str] = ()  # of a method that asks a model: what its prompt template was filled with
    files: Sequence[File] = ()  # those that the user gave with the question
    fields: Sequence[str] = ()  # the texts in a result that has several parts
    top_k: int | None = None
    source: str | None = None  # what a search searched

    origin: Step | None = None  # the inner step whose result it handed on

    def __init__(self, role: Role | None = None, span_id: str = "", of_class: ClassFacts | None = None) -> None:
        self.role = role
        self.span_id = span_id
        self.of_class = of_class

    def has_base(self, name: str) -> bool:
        """Whether the framework's class of this name is among the bases of the step's class."""
        return self.of_class is not None and name in self.of_class.bases

    @property
    def provider(self) -> str | None:
        """Each provider has a package of its own, below the same one."""
        module = "" if self.of_class is None else self.of_class.module
        name = module.removeprefix(_PROVIDERS)
        return None if name == module else name.partition(".")[0]
