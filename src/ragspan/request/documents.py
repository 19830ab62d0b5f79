"""The documents that a request's steps showed, and what was searched with: read from its tree, in order of time."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

from ragspan import field_names
from ragspan.messages import MAX_MESSAGE, TOOL_ERROR, ErrorReport
from ragspan.record_json import plain_entries
from ragspan.records import RetrievedContext
from ragspan.request.contents import (
    Document,
    Found,
    documents_in,
    documents_of_messages,
    is_conversation,
    prompt_of,
    scored_document,
    tool_messages,
)
from ragspan.request.tool_documents import add_searches
from ragspan.request.tree import ModelStep, RequestTree, SearchStep, SeenDocument, Step, ToolStep
from ragspan.safe_copy import LONG_TEXT, Opaque, Snapshot

_SEARCHED = re.compile(
    r"(?:^|_)(?:docs?|documents?|contexts?|passages?|chunks?|hits|snippets|articles|found|retrieved)"
    r"(?:_(?:list|texts?|found|used))?$|^(?:(?:re)?search_|web_|retrieval_|query_)*results$"
)
_case = re.compile(r"(?<=[a-z])(?=[A-Z])")


class SeenDocuments:
    """What the steps of a request showed, and of the requests that it continues.

    It tells each tool and search what it found, and each model what had been seen until then.

    Args:
        tree: the request.
    """

    def __init__(self, tree: RequestTree) -> None:
        self.documents: dict[int, SeenDocument] = {}
        self._texts: dict[SeenDocument, str] = {}
        self.queries: list[str] = []
        """What was searched with, or may have been."""
        for each in tree.chain_of_requests:
            add_searches(each)
            self.unreadable: dict[int, Step] = {}
            """Search results that only the program may read, by identity; of the request itself, as all below."""
            self.empty_search = each.found_nothing
            self.has_earlier_documents = False
            """A prompt's history held documents of earlier turns."""
            self._first_seen_in: dict[SeenDocument, Step] = {}
            # Documents do not know their steps, which hold them: cycles would wait for the garbage collector.
            self._open_searches: dict[SearchStep, None] = {}
            self._models: list[ModelStep] = []
            self._shown: set[tuple[int, ...]] = set()
            for step, is_over in each.moments:
                if is_over:
                    self._end(step)
                else:
                    self._begin(step)

    @property
    def all(self) -> Sequence[SeenDocument]:
        """The documents, in the order in which they were seen."""
        return list(self.documents.values())

    # Starts

    def _begin(self, step: Step) -> None:
        if isinstance(step, ModelStep):
            self._begin_model(step)
        elif isinstance(step, SearchStep):
            self._open_searches[step] = None
            if step.query is not None:
                self.queries.append(step.query)
        elif isinstance(step, ToolStep):
            texts = step.inputs.values() if isinstance(step.inputs, dict) else [step.inputs]
            self.queries += [text for text in texts if isinstance(text, str)]
        else:
            if isinstance(step.inputs, Opaque) and step.inputs.identity in self.unreadable:
                step.consumed = step.inputs.identity
            self._see_all(step.inputs, step)

    def _begin_model(self, step: ModelStep) -> None:
        step.beside_search = any(search.parent is step.parent is not None for search in self._open_searches)
        self._models.append(step)
        if step.inside_search:
            return
        current, from_history = documents_of_messages(step.inputs, self._shown)
        for found in [*current, *documents_in(step.beside)]:
            self._see(found, step, ranked=self._is_first_seen_in(step, found))
        self.has_earlier_documents |= from_history
        if len(self._texts) < len(self.documents):  # else all models share it: they may be as many as the documents
            new = islice(self.documents.values(), len(self._texts), None)
            self._texts = self._texts | {entry: entry.text for entry in new}
        step.seen = self._texts
        if step.rewritten:
            texts = {id(document): text for document, text in step.rewritten}
            step.seen = {entry: texts.get(id(entry.document), text) for entry, text in self._texts.items()}
        step.prompt = prompt_of(step.inputs, step.beside)

    # Ends

    def _end(self, step: Step) -> None:
        if isinstance(step, SearchStep):
            self._open_searches.pop(step, None)
        if step.noted is None:
            if isinstance(step, SearchStep):
                self._end_search(step, step.output)
            elif isinstance(step, ToolStep):
                self._end_tool(step)
            elif not isinstance(step, ModelStep):
                self._end_chain(step)
        if step.parent is None and step.late_inputs is not None:
            self._see_all(step.late_inputs, step)

    def _end_chain(self, step: Step) -> None:
        for found in documents_in(step.output):
            is_result = step.parent is not None and self._is_first_seen_in(step, found)  # then of a search
            self._see(found, step, ranked=is_result)
            if is_result:
                self.queries += self._searched_with(step)
            self.unreadable.pop(step.consumed, None)
        self.empty_search |= self._searched_in_vain(step)

    def _end_tool(self, step: ToolStep) -> None:
        messages = tool_messages(step.output)
        failed = next((message for message in messages if message.failed), None)
        if failed is not None:  # the tool's caller made a result of the error
            step.noted = ErrorReport(type=TOOL_ERROR, message=failed.text[:MAX_MESSAGE])
        artifacts = [message.artifact for message in messages]
        self.empty_search |= [] in artifacts
        lists = [found for shown in (*artifacts, step.output) for found in documents_in(shown)]
        step.shown = [entry for found in lists for entry in self._see(found, step, ranked=True)]

    def _end_search(self, step: SearchStep, documents: Snapshot) -> None:
        if not isinstance(documents, list):
            self.unreadable[documents.identity if isinstance(documents, Opaque) else id(documents)] = step
        elif not documents:
            self.empty_search = True
        else:
            # Only the outermost search gives the ranked result; the lists inside it do not count.
            items = (Document(item, None, {}) if isinstance(item, str) else item for item in documents)
            found = [pair for pair in map(scored_document, items) if pair is not None]
            step.found = self._see(found, step, ranked=not step.inside_search)
            self.unreadable = {key: inner for key, inner in self.unreadable.items() if not inner.is_within(step)}

    # Documents

    def _see_all(self, inputs: Snapshot, step: Step) -> None:
        """Note the documents that a step was called with."""
        for found in documents_in(inputs):
            self._see(found, step, ranked=False, from_history=is_conversation(inputs))

    def _see(self, found: Found, step: Step, *, ranked: bool, from_history: bool = False) -> list[SeenDocument]:
        """Note documents that a step shows; `ranked` if the list is the result of a search."""
        seen = []
        for rank, (document, score) in enumerate(found):
            entry = self.documents.get(id(document))
            if entry is None:
                entry = SeenDocument(document, rank if ranked else None, score, from_history)
                self.documents[id(document)], self._first_seen_in[entry] = entry, step
            elif ranked:
                entry.from_history = False
                entry.rank = rank if entry.rank is None else entry.rank
            seen.append(entry)
        return seen

    def _is_first_seen_in(self, step: Step, found: Found) -> bool:
        """Whether a step found these documents: no other step had shown them before, except for steps inside it."""
        for document, _ in found:
            entry = self.documents.get(id(document))
            if entry is not None and (
                (seen_in := self._first_seen_in.get(entry)) is None or not seen_in.is_within(step)
            ):
                return False
        return True

    def _searched_with(self, step: Step) -> list[str]:
        """What a step that found new documents may have searched with: its input, or what a model wrote into that."""
        if isinstance(step.inputs, str):
            return [step.inputs]
        written = {model.reply.text for model in self._models if model.reply is not None}
        fields = step.inputs.values() if type(step.inputs) is dict else ()
        return [text for text in fields if isinstance(text, str) and text in written]

    def _searched_in_vain(self, step: Step) -> bool:
        """Whether a step searched and found nothing: its output has such a name, or it was given texts and no model answered."""
        if type(step.output) is dict:
            empty = [_case.sub("_", key).lower() for key, value in step.output.items() if value == []]
            return any(map(_SEARCHED.search, empty))  # other empty lists are plans, notes, errors
        if step.output != [] or step.name.endswith("Parser") or any(model.is_within(step) for model in self._models):
            return False
        given = step.inputs if step.late_inputs is None else step.late_inputs  # a stream's input comes with its end
        texts = list(given.values()) if type(given) is dict else [given]
        return all(type(text) is str or text is LONG_TEXT for text in texts)


# Documents as contexts

ToContext = Callable[[SeenDocument], RetrievedContext]
"""Makes a context of a document."""


def context_of(document: Document, *, rank: int | None, score: float | None) -> RetrievedContext:
    """A document as a context."""
    metadata = plain_entries(document.metadata)
    return RetrievedContext(
        text=document.text,
        id=document.id,
        rank=rank,
        score=score,
        source=next((source for name in field_names.SOURCE if (source := text_or_none(metadata.get(name)))), None),
        metadata=metadata,
    )


def context_of_seen(seen: SeenDocument) -> RetrievedContext:
    return context_of(seen.document, rank=seen.rank, score=seen.score)


def text_or_none(value: Any) -> str | None:
    return value if isinstance(value, str) else None
