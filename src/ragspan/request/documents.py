"""The documents that a request's steps showed, and what was searched with: read from its tree, in order of time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from ragspan import field_names
from ragspan.config import retrieval_tools
from ragspan.messages import MAX_MESSAGE, TOOL_ERROR, ErrorReport
from ragspan.request.contents import (
    MESSAGE,
    Document,
    PayloadMessage,
    as_json,
    content_text,
    json_in,
    texts_in,
    tool_messages,
)
from ragspan.request.steps import ModelStep, SearchStep, SeenDocument, Step, ToolStep
from ragspan.request.tree import RequestTree
from ragspan.safe_copy import Hidden, Snapshot, kept_entries

_MAX_DOCUMENTS = 1000
_MAX_DEPTH = 6


class SeenDocuments:
    """What the steps of a request showed, and of the requests that it continues.

    It tells each tool and search what it found, and each model its prompt.
    """

    def __init__(self, tree: RequestTree) -> None:
        self.documents: dict[int, SeenDocument] = {}
        self.queries: list[str] = []  # what was searched with, or may have been
        for each in tree.chain_of_requests:
            _add_searches(each)
            self.unreadable: list[Step] = []
            """Searches whose results only the program may read; of the request itself, as all below."""
            self.empty_search = each.found_nothing
            self.has_earlier_documents = False  # a prompt's history held documents of earlier turns
            self._models: list[ModelStep] = []
            for step, is_over in each.moments:
                if is_over:
                    self._end(step)
                else:
                    self._begin(step)

    @property
    def all(self) -> Sequence[SeenDocument]:
        """The documents, in the order in which they were seen."""
        return list(self.documents.values())

    def _begin(self, step: Step) -> None:
        if isinstance(step, ModelStep):
            self._models.append(step)
            if not step.inside_search:
                current, from_history = documents_of_messages(step.inputs)
                for found in current if step.beside is None else [*current, *documents_in(step.beside)]:
                    self._see(found, ranked=self._is_new(found))
                self.has_earlier_documents |= from_history
                step.prompt = prompt_of(step.inputs, step.beside)
        elif isinstance(step, SearchStep):
            self.queries += [] if step.query is None else [step.query]
        elif isinstance(step, ToolStep):
            texts = step.inputs.values() if isinstance(step.inputs, dict) else [step.inputs]
            self.queries += [text for text in texts if isinstance(text, str) and not step.repeats_call]
        else:
            self._see_all(step.inputs)

    def _end(self, step: Step) -> None:
        if step.noted is None:
            if isinstance(step, SearchStep):
                self._end_search(step, step.output)
            elif isinstance(step, ToolStep):
                self._end_tool(step)
            elif not isinstance(step, ModelStep):
                self._end_chain(step)
        if step.parent is None and step.late_inputs is not None:
            self._see_all(step.late_inputs)

    def _end_chain(self, step: Step) -> None:
        output, given = step.output, step.inputs if step.late_inputs is None else step.late_inputs
        for found in documents_in(output):
            is_result = step.parent is not None and self._is_new(found)  # then of a search
            self._see(found, ranked=is_result)
            if is_result:  # it was searched with the step's input, or with what a model wrote into that
                written = {model.reply.text for model in self._models if model.reply is not None}
                fields = given.values() if type(given) is dict else ()
                texts = [given] if isinstance(given, str) else [each for each in fields if isinstance(each, str)]
                self.queries += [text for text in texts if text is given or text in written]
        if type(output) is dict:  # other empty lists are plans, notes, errors
            self.empty_search |= any(output.get(name) == [] for name in field_names.CONTEXTS)
        elif (
            output == []
            and isinstance(given, str)
            and not (step.name.endswith("Parser") or any(model.is_within(step) for model in self._models))
        ):
            self.empty_search = True

    def _end_tool(self, step: ToolStep) -> None:
        messages = tool_messages(step.output)
        failed = next((message for message in messages if message.failed), None)
        if failed is not None:  # the tool's caller made a result of the error
            step.noted = ErrorReport(type=TOOL_ERROR, message=failed.text[:MAX_MESSAGE])
        artifacts = [message.artifact for message in messages]
        self.empty_search |= [] in artifacts
        lists = [found for shown in (*artifacts, step.output) for found in documents_in(shown)]
        step.shown = [entry for found in lists for entry in self._see(found, ranked=True)]

    def _end_search(self, step: SearchStep, documents: Snapshot) -> None:
        if not isinstance(documents, list):
            self.unreadable.append(step)
        elif not documents:
            self.empty_search = True
        else:
            # Only the outermost search gives the ranked result; the lists inside it do not count.
            items = (Document(item, None, {}) if isinstance(item, str) else item for item in documents)
            found = [pair for pair in map(scored_document, items) if pair is not None]
            step.found = self._see(found, ranked=not step.inside_search)
            self.unreadable = [inner for inner in self.unreadable if not inner.is_within(step)]

    def _see_all(self, inputs: Snapshot) -> None:
        for found in documents_in(inputs):
            self._see(found, ranked=False, from_history=is_conversation(inputs))

    def _see(self, found: ScoredDocuments, *, ranked: bool, from_history: bool = False) -> list[SeenDocument]:
        """Note documents that a step shows; `ranked` if the list is the result of a search."""
        seen = []
        for rank, (document, score) in enumerate(found):
            entry = self.documents.get(id(document))
            if entry is None:
                entry = SeenDocument(document, rank if ranked else None, score, from_history)
                self.documents[id(document)] = entry
            elif ranked:
                entry.from_history = False
                entry.rank = rank if entry.rank is None else entry.rank
            seen.append(entry)
        return seen

    def _is_new(self, found: ScoredDocuments) -> bool:
        """Whether no step had shown these documents before."""
        return all(id(document) not in self.documents for document, _ in found)


# Documents in the payloads of steps


ScoredDocuments: TypeAlias = list[tuple[Document, float | None]]
"""Documents, each with its score if it came with one."""


def documents_in(value: Snapshot) -> list[ScoredDocuments]:
    """The documents in a payload, list by list: inside dictionaries, states and `(document, score)` pairs.

    Messages are not entered: what they carry may be the history of earlier turns.
    """
    if isinstance(value, Document):
        return [[(value, None)]]
    if isinstance(value, dict):
        return [found for item in value.values() for found in documents_in(item)]
    if isinstance(value, Hidden):
        return documents_in(value.inside)
    if not isinstance(value, list):
        return []
    own: ScoredDocuments = []
    others: list[ScoredDocuments] = []
    for item in value:
        if (pair := scored_document(item)) is not None:
            own.append(pair)
        else:
            others += documents_in(item)
    return [own, *others] if own else others


def scored_document(item: Snapshot) -> tuple[Document, float | None] | None:
    """A document, alone or as `(document, score)`."""
    if type(item) is list and len(item) == 2 and type(item[0]) is Document is not type(item[1]):  # noqa: PLR2004  (document, score)
        score = item[1]
        return item[0], score if type(score) is float else float(score) if isinstance(score, (int, float)) else None
    return (item, None) if type(item) is Document else None


def documents_of_messages(messages: Sequence[Snapshot]) -> tuple[list[ScoredDocuments], bool]:
    """The documents that a conversation's messages carry beside their text.

    Those of the user's last message and after it are of the current request; of earlier ones, which are history, it
    is only said whether there are any.
    """
    spoken = [message for message in messages if isinstance(message, PayloadMessage)]
    if all(message.artifact is None and message.documents is None for message in spoken):
        return [], False
    last = max((index for index, message in enumerate(spoken) if message.role == "human"), default=-1)
    earlier, current = spoken[: max(last, 0)], spoken[last + 1 :]
    found = documents_in(spoken[last].documents) if last >= 0 else []
    found += (one for message in current if message.role == "tool" for one in documents_in(message.artifact))
    return found, any(documents_in(message.artifact) for message in earlier if message.role == "tool")


def prompt_of(messages: Sequence[Snapshot], documents: Snapshot) -> list[PayloadMessage]:
    """A chat prompt, or a plain one, with all that it shows as text; some models get documents beside the messages."""
    prompt: list[PayloadMessage] = []
    for one in messages:
        if isinstance(one, str):
            prompt.append(PayloadMessage("human", one))
        elif isinstance(one, PayloadMessage):
            is_text = isinstance(one.content, str) and one.documents is None
            shown = (
                one if is_text else PayloadMessage(one.role, one.prompt_text, one.calls, one.call_id, unread=one.unread)
            )
            prompt.append(shown)
    return prompt if documents is None else [*prompt, PayloadMessage("system", "\n".join(texts_in(documents)))]


def is_conversation(inputs: Snapshot) -> bool:
    """Whether a payload is the state of a conversation, whose documents may be an earlier turn's."""
    lists = [value for value in inputs.values() if isinstance(value, list)] if isinstance(inputs, dict) else []
    return any(items and (isinstance(items[-1], PayloadMessage) or items[-1] is MESSAGE) for items in lists)


# Tools that the user named as a search (`RAGSPAN_RETRIEVAL_TOOLS`), an MCP server's too


def _add_searches(tree: RequestTree) -> None:
    """Add the searches that tools are which the user named so: each is a step inside the tool, and found what that returned."""
    moments: list[tuple[Step, bool]] = []
    added: dict[Step, SearchStep] = {}
    names = retrieval_tools() if tree.all_of(ToolStep) else ()
    for step, is_over in tree.moments if names else ():
        is_named = is_over and isinstance(step, ToolStep) and step.name in names
        if is_named and step.noted is None and not any(each.failed for each in tool_messages(step.output)):
            search = added[step] = SearchStep(
                name=step.name,
                parent=step,
                started_ns=step.started_ns,
                ended_ns=step.ended_ns,
                inputs=searched_with(step),
                output=[[document, score] for document, score in documents_of_result(step.output)],
            )
            moments += [(search, False), (search, True)]
        moments.append((step, is_over))
    if added:
        tree.rearrange([one for step in tree.steps for one in (step, added.get(step)) if one is not None], moments)


def searched_with(tool: Step) -> str | None:
    """What a tool that is a search was asked."""
    given = tool.inputs.values() if isinstance(tool.inputs, dict) else [tool.inputs]
    return next((text for text in given if isinstance(text, str)), None)


def documents_of_result(output: Snapshot) -> ScoredDocuments:
    """The documents that a tool returned: as such, as the hits in JSON, or as texts, each of which is one."""
    messages = tool_messages(output)
    shown = [each.artifact for each in messages] + [output]
    found = [pair for value in shown for some in documents_in(value) for pair in some]
    blocks = [each.content if isinstance(each.content, list) else [each.content] for each in messages]
    parts = [content_text([block]) for own in blocks for block in own] if messages else [output]
    for part in parts if not found else ():
        data = json_in(part) if isinstance(part, str) else part
        found += (hits := list(_hits(data)))
        is_empty = data == [] or (isinstance(data, Mapping) and [] in data.values())
        if not hits and not is_empty and (text := part if isinstance(part, str) else as_json(part)):
            found.append((Document(text, None, {}), None))
    return found[:_MAX_DOCUMENTS]


def _hits(data: Any, depth: int = 0) -> Iterator[tuple[Document, float | None]]:
    """The objects with a text in what a search service answered; in lists also texts, as in columns."""
    if depth > _MAX_DEPTH or not isinstance(data, (list, Mapping)):
        return
    if isinstance(data, list):
        for item in data:
            yield from [(Document(item, None, {}), None)] if isinstance(item, str) else _hits(item, depth + 1)
        return
    about = _first_of(data, field_names.METADATA)
    about = about if isinstance(about, Mapping) else {}
    text = next((own[key] for own in (data, about) for key in field_names.TEXT if isinstance(own.get(key), str)), None)
    if text is None:
        lists = {key: item for key, item in data.items() if isinstance(item, list)}
        named = [lists[key] for key in field_names.CONTEXTS if key in lists]  # beside columns of ids
        for item in named or list(lists.values()) or list(data.values()):
            yield from _hits(item, depth + 1)
        return
    own_id, score = _first_of(data, field_names.ID), _first_of(data, field_names.SCORE)
    sources = {key: data[key] for key in field_names.SOURCE if isinstance(data.get(key), str)}
    is_number = isinstance(score, (int, float)) and not isinstance(score, bool)
    document = Document(text, None if own_id is None else str(own_id), kept_entries({**sources, **about}))
    yield document, float(score) if is_number else None


def _first_of(data: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    return next((data[key] for key in keys if data.get(key) is not None), None)
