"""Which documents a request's answer rests on: those that reached the prompts behind it.

The prompts behind an answer are that of the model whose words the caller got, and those of earlier models whose words
stand in such a prompt: partial answers, notes, drafts, the answer of another agent. What a model says only about a
document (a grade, a choice) and what it writes only to search with do not make its documents count.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

from ragspan.records import RetrievedContext
from ragspan_langchain.answers import json_in, texts_in
from ragspan_langchain.matching import Match, PromptText
from ragspan_langchain.replies import joined
from ragspan_langchain.runs import ModelRun, SeenDocument, Trace

_MAX_PROMPTS = 50
_MIN_LIKENESS = 0.5
_COMPARED = 2000


def contexts_of(trace: Trace, question: str | None, response: str | None) -> tuple[RetrievedContext, ...] | None:
    """The documents in prompt order; `()` if none reached the prompt, None if they could not be observed."""
    behind = _models_behind(trace, question, response)
    found: dict[str, RetrievedContext] = {}
    for document, text, match in _documents_in_prompts(behind):
        if text not in found:
            found[text] = as_context(document, text, truncated=not match.whole)
    for context in trace.recorded:
        found.setdefault(context.text, context)
    if found:
        return tuple(found.values())
    if trace.unreadable:
        return None
    observed = trace.documents or trace.empty_search or trace.carried_documents
    return () if observed or not reached_model(trace) else None


def reached_model(trace: Trace) -> list[ModelRun]:
    """The calls of models that may have served the answer: not those that a retriever makes for itself."""
    return [run for run in trace.models if not run.inside_search]


def _documents_in_prompts(models: Sequence[_Behind]) -> list[tuple[SeenDocument, str, Match]]:
    """The documents of all prompts, those of earlier prompts first, each prompt's in its order."""
    ordered = sorted(models, key=lambda behind: behind.run.started_ns)
    return [item for behind in ordered for item in behind.documents]


class _Behind:
    """A model's prompt, with the documents that stand in it."""

    def __init__(self, run: ModelRun, trace: Trace, question: str) -> None:
        self.run = run
        self.prompt = PromptText(_shown(run, "human", "system", "tool"), apart=question)
        texts = dict(zip(run.prompt.seen, run.prompt.texts, strict=True))
        entries = list(trace.documents.values())
        current = [texts.get(entry, entry.text) for entry in entries]
        matches = zip(entries, current, self.prompt.find(current), strict=True)
        found = [(entry, text, match) for entry, text, match in matches if match is not None]
        self.documents = sorted(found, key=lambda item: item[2].start)
        self._own_words = PromptText(_shown(run, "ai"))

    def quotes(self, earlier: ModelRun, queries: frozenset[str]) -> bool:
        """Whether this prompt holds what an earlier model said, other than as a document or a query."""
        for words in _words_of(earlier):
            if _even(words) in queries:
                continue
            if self._is_tool_result(words):
                return True
            if self._holds(words):
                return True
        return False

    def _is_tool_result(self, words: str) -> bool:
        return any(part.role == "tool" and _even(part.text) == _even(words) for part in self.run.prompt.parts)

    def _holds(self, words: str) -> bool:
        if any(_even(words) in _even(text) for _, text, _ in self.documents):
            return False
        return self.prompt.holds(words) or self._own_words.holds(words)


def _models_behind(trace: Trace, question: str | None, response: str | None) -> list[_Behind]:
    models = reached_model(trace)[-_MAX_PROMPTS:]
    queries = frozenset(_even(query) for query in trace.queries)
    waiting = _answering(models, response)
    behind: list[_Behind] = []
    seen = {id(run) for run in waiting}
    while waiting:
        current = _Behind(waiting.pop(), trace, question or "")
        behind.append(current)
        for earlier in models:
            if id(earlier) not in seen and _ended_before(earlier, current.run) and current.quotes(earlier, queries):
                seen.add(id(earlier))
                waiting.append(earlier)
    return behind


def _ended_before(earlier: ModelRun, later: ModelRun) -> bool:
    return not earlier.beside_search and earlier.error is None and 0 < earlier.ended_ns <= later.started_ns


def _answering(models: Sequence[ModelRun], response: str | None) -> list[ModelRun]:
    """The calls whose words the caller got; if their words were changed on the way, the likeliest one."""
    if not models:
        return []
    answer = _even(response or "")
    replied = [run for run in models if run.reply is not None]
    if not answer or not replied:
        return [models[-1]]
    same = [run for run in replied if _even(run.reply.text if run.reply else "") == answer]
    if same:
        return [same[-1]]
    quoted = [run for run in replied if _is_part(_even(run.reply.text if run.reply else ""), answer)]
    if quoted:
        return quoted
    alike = [(_likeness(run, answer), run) for run in replied]
    best = max(likeness for likeness, _ in alike)
    if best >= _MIN_LIKENESS:
        return [next(run for likeness, run in reversed(alike) if likeness == best)]
    return [replied[-1]]


def _is_part(words: str, answer: str) -> bool:
    """Whether a reply of at least two words is a part of the answer, or the answer a part of the reply."""
    if " " not in words or " " not in answer:
        return False
    return words in answer or answer in words


def _likeness(run: ModelRun, answer: str) -> float:
    said = _even(" ".join(_words_of(run)))[:_COMPARED]
    return difflib.SequenceMatcher(None, said.split(), answer[:_COMPARED].split(), autojunk=False).ratio()


def _words_of(run: ModelRun) -> list[str]:
    """What a model said: its text, the texts in its tool calls, or what it had streamed."""
    if run.reply is None:
        streamed = joined(run.tokens)
        return [streamed] if streamed else []
    texts = [run.reply.text] if run.reply.text.strip() else []
    if run.reply.text.lstrip().startswith(("{", "[", "```")):
        texts += texts_in(json_in(run.reply.text))
    return [*texts, *texts_in(run.reply.calls)]


def _shown(run: ModelRun, *roles: str) -> str:
    """The text of a prompt's parts; documents are looked for outside of what the assistant itself said earlier."""
    return "\n".join(part.text for part in run.prompt.parts if part.role in roles)


def as_context(entry: SeenDocument, text: str, *, truncated: bool = False) -> RetrievedContext:
    source = entry.metadata.get("source")
    return RetrievedContext(
        text=text,
        id=entry.id,
        rank=entry.rank,
        score=entry.score,
        source=source if isinstance(source, str) else None,
        truncated=truncated,
        metadata={key: value for key, value in entry.metadata.items() if is_plain(key, value)},
    )


def is_plain(key: Any, value: Any) -> bool:
    """Whether an entry of metadata is plain data, which a record can carry anywhere."""
    return isinstance(key, str) and (value is None or isinstance(value, (str, int, float, bool)))


def _even(text: str) -> str:
    return " ".join(text.split())
