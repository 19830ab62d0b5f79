"""What prompts were filled with: the values of templates, and what steps and the caller handed on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from ragspan import field_names
from ragspan.matching import has_words, occurrences
from ragspan.request.contents import Document, FilledPrompt, leaves_in, spoken_in
from ragspan.request.documents import prompt_of
from ragspan.request.steps import Step
from ragspan.request.tree import RequestTree
from ragspan.safe_copy import Opaque, Snapshot

FROM_CALLER, FROM_STEP = 8, 3
"""Words of a text that is data: of a field of the caller's or a template's value, and of what a step gave out."""
MIN_VALUE = 4  # characters of a value that is looked for
_MAX_VALUES = 300
_MAX_LENGTH = 100_000
_MAX_COLUMNS = 50
_INSTRUCTING = frozenset(
    {"system", "template", "instruction", "instructions", "persona", "format", "schema", "example", "examples", "shot"}
    | {"shots", "tone", "style", "prompt", "history", "conversation", "chat", "turns", "messages", "question", "query"}
    | {"role", "rules", "dialogue", "guidelines", "constraints", "tools"}
)
"""Words in the names of fields that hold instructions, or what was said."""
_OF_DATA = frozenset({"result", "results", "row", "rows", "fact", "facts", "context", "data", "record", "records"})
"""Words that a name has where the field holds data all the same: "query_result"."""


def filled_texts(tree: RequestTree, found: set[str | None]) -> dict[str, list[str]]:
    """By a text that a prompt template gave out, the texts that it was filled with, as far as they stand there.

    Those of documents are found already.
    """
    given: dict[int, tuple[Sequence[Snapshot], list[Snapshot]]] = {}  # several templates may have made the same prompts
    filling = [(step, step.output.messages) for step in tree.all_steps if isinstance(step.output, FilledPrompt)]
    # LangChain's classic chain fills its template without a run for it: its own inputs are the template's values.
    asked = [(call.parent, call.messages) for call in tree.answering_models]
    filling += [(step, given) for step, given in asked if step is not None and step.name == "LLMChain"]
    for step, messages in filling:
        own = step.inputs if step.late_inputs is None else step.late_inputs
        if isinstance(own, Document):  # by the names of its fields
            own = [own.text, *own.metadata.values()]
        values = own.values() if isinstance(own, dict) else own if isinstance(own, list) else [own]
        given.setdefault(id(messages), (messages, []))[1].extend(values)
    filled: dict[str, list[str]] = {}
    for messages, values in given.values():
        others = [value for value in values if not isinstance(value, str) or value not in found]
        texts = [text for _, text in _texts_in(others) if len(text.strip()) >= MIN_VALUE]
        has_documents = any(isinstance(leaf, Document) for _, leaf in leaves_in(values))
        for prompt in dict.fromkeys(part.text for part in prompt_of(messages, None) if part.role != "ai"):
            lines = prompt.split("\n") if has_documents else ()  # Python writes a list of documents into one
            lists = [line[line.find("Document(") : line.rfind("]")] for line in lines if "Document(" in line]
            written = (text for text in (*filter(None, lists), *texts) if text not in found)
            stands = (text for text in written if next(occurrences(prompt, text.strip()), -1) >= 0)
            filled.setdefault(prompt, []).extend(stands)
    return filled


def data_in(tree: RequestTree, asked: Iterable[str]) -> list[Sequence[str]]:
    """The texts that are data wherever they stand, and rows of values: of steps, of templates, and of the caller.

    Not what was said, what was asked or searched with, nor instructions.
    """
    since: dict[Sequence[str], int] = {}
    """The time from which on each is there."""
    instructions: set[str] = set()
    prompts = {part.text for model in tree.answering_models for part in model.prompt}  # as a whole these are not data
    for step in tree.all_steps:
        if len(since) > _MAX_VALUES:
            break
        value: Snapshot = None
        time_ns, least, has_rows = step.ended_ns, FROM_STEP, True
        if step.parent is None:
            time_ns, least = 0, FROM_CALLER
            value = (step.late_inputs or step.inputs) if isinstance(step.inputs, dict) else None
        elif type(step) is Step and isinstance(step.output, FilledPrompt):
            value, time_ns, least, has_rows = step.inputs, step.started_ns, FROM_CALLER, False
        elif type(step) is Step and not isinstance(step.output, Opaque):
            value = None if isinstance(step.output, str) and step.output in prompts else step.output
        for name, text in _texts_in(value):
            if _instructs(name, text):
                instructions.add(text.strip())
            elif len(text) <= _MAX_LENGTH and has_words(text, least):
                since.setdefault((text.strip(),), time_ns)
        for row in _rows_in(value) if has_rows and isinstance(value, (dict, list)) else ():
            since.setdefault(row, time_ns)
    left_out = {text.strip() for text in asked}
    return [
        parts
        for parts, time_ns in islice(since.items(), _MAX_VALUES)
        if left_out.isdisjoint(parts) and not instructions.issuperset(parts) and not _was_said(parts, time_ns, tree)
    ]


def _instructs(name: str, text: str) -> bool:
    """Whether a field of this name holds instructions, or what was said."""
    words = field_names.words_in_name(name)
    if words > {"history"} and next(spoken_in(text), None) is None:
        words.remove("history")  # "order_history"
    return not _INSTRUCTING.isdisjoint(words) and _OF_DATA.isdisjoint(words)


def _was_said(parts: Sequence[str], time_ns: int, tree: RequestTree) -> bool:
    """Whether models had said these texts, or a part of one, by that time; a model may quote data afterwards."""
    said = [model for model in tree.answering_models if model.ended_ns <= time_ns]
    if any((one := model.said.strip()) and has_words(one, 2) and any(one in text for text in parts) for model in said):
        return True
    return all(
        any(text in one for model in said for one in model.texts_said) for text in parts if len(text) >= MIN_VALUE
    )


def _rows_in(value: Snapshot) -> Iterator[Sequence[str]]:
    """The texts and numbers of each dictionary and list in a value, as of the rows of a table."""
    items = list(value.values() if isinstance(value, dict) else value)
    row = [str(each).strip() for each in items[:_MAX_COLUMNS] if type(each) in {str, int, float}]
    if len(row) > 1 and has_words(" ".join(row), FROM_STEP):
        yield tuple(filter(None, row))
    for each in items:
        if isinstance(each, (dict, list)):
            yield from _rows_in(each)


def _texts_in(value: Snapshot) -> Iterator[tuple[str, str]]:
    """The texts in a value by the names of their fields, but not those of messages and documents."""
    return ((name, leaf) for name, leaf in leaves_in(value) if isinstance(leaf, str))
