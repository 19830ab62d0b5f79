"""Which calls of models stand behind an answer.

They are the call whose words the caller got, and earlier calls whose words stand in such a call's prompt: partial answers,
notes, drafts, the answer of another agent. What a model says only about a document (a grade, a choice) and what it writes
only to search with do not make its prompt one of these.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Container, Iterable, Sequence
from itertools import islice

from ragspan.matching import Match, PromptText, word_count
from ragspan_langchain.answers import calls_text, json_in, texts_in
from ragspan_langchain.replies import joined
from ragspan_langchain.runs import ModelRun, SeenDocument, Trace
from ragspan_langchain.turns import Turn, squeezed, turns_of

_MAX_MODELS = 1000
_MAX_SEARCHED = 50
"""Prompts that are searched for excerpts of documents as well, which takes longer than to search for whole ones."""
_MIN_LIKENESS = 0.5
_COMPARED = 2000
_MIN_SENTENCE = 3

_VERDICTS = {
    "yes",
    "no",
    "true",
    "false",
    "relevant",
    "irrelevant",
    "correct",
    "incorrect",
    "good",
    "bad",
    "pass",
    "fail",
}
"""Replies that only grade."""

_MAX_UNIT = 2000
_MAX_LINES = 5000
_MAX_JSON = 100_000

_line = re.compile(r"^.{1,2000}$", re.MULTILINE)
_list_mark = re.compile(r"^\s*(?:[-*•>]|\d+[.):])\s+")
_sentence_end = re.compile(r"(?<=[.!?。！？])\s*")  # noqa: RUF001  Chinese and Japanese sentences end in these


class PromptBehind:
    """The prompt of a call that stands behind the answer, with the documents in it.

    Args:
        run: the call.
        trace: its request.
        question: the user's own words, which hold no documents even if they quote one.
        said: what the models of the request said, as `turns_of` takes it.
        excerpts: look for excerpts of documents as well.
    """

    def __init__(self, run: ModelRun, trace: Trace, question: str, said: Container[str], *, excerpts: bool) -> None:
        self.run = run
        turns = turns_of(run.prompt.parts, said)
        now = [part for part, turn in zip(run.prompt.parts, turns, strict=True) if turn is Turn.THIS]
        before = [part for part, turn in zip(run.prompt.parts, turns, strict=True) if turn is Turn.EARLIER]
        self._given = [*now, *before]
        self._prompt = PromptText("\n".join(part.text for part in self._given), apart=question)
        self._own_words = PromptText("\n".join(part.text for part in run.prompt.parts if part.role == "ai"))
        texts = dict(zip(run.prompt.seen, run.prompt.texts, strict=True))
        entries = list(trace.documents.values())
        current = [texts.get(entry, entry.text) for entry in entries]
        places = self._prompt.find(current, excerpts=excerpts)
        if before and any(entry.carried for entry in entries):  # what the state carries is history in earlier messages
            present = PromptText("\n".join(part.text for part in now), apart=question)
            now_places = present.find(current, excerpts=excerpts)
            places = [
                new if entry.carried else place for entry, place, new in zip(entries, places, now_places, strict=True)
            ]
        matches = zip(entries, current, places, strict=True)
        found = [(entry, text, match) for entry, text, match in matches if match is not None]
        self.documents: list[tuple[SeenDocument, str, Match]] = sorted(found, key=lambda item: item[2].start)
        """In prompt order."""
        self._units: set[str] | None = None
        self._results = [_even(part.text[:_MAX_UNIT]) for part in self._given if part.role == "tool"]

    def _has_unit(self, said: str) -> bool:
        """Whether something that was said is a whole line, message or field of the prompt, and of no document."""
        if self._units is None:
            drafts = {_even(part.text[:_MAX_UNIT]) for part in self.run.prompt.parts if part.role == "ai"}
            units = {unit for part in self._given for unit in _units(part.text)}
            self._units = (units | drafts) - {unit for _, text, _ in self.documents for unit in _units(text)}
        return said in self._units

    def quotes(self, words: str) -> bool:
        """Whether it holds what a model said, other than inside a document."""
        said = _even(words)
        if _bare(said) in _VERDICTS:
            return False
        if self._has_unit(said) or any(word_count(part) > 1 and part in said for part in self._results):
            return True
        if word_count(said) < 2 or any(said in _even(text) for _, text, _ in self.documents):  # noqa: PLR2004  a word stands anywhere
            return False
        if self._prompt.holds(said) or self._own_words.holds(said):
            return True
        sentences = [sentence for sentence in _sentence_end.split(said) if word_count(sentence) >= _MIN_SENTENCE]
        return len(sentences) > 1 and any(self._prompt.holds(sentence) for sentence in sentences)


def prompts_behind(trace: Trace, question: str | None, response: str | None) -> list[PromptBehind]:
    """The prompts behind an answer, in order of time; those of its parts in the order of the parts."""
    models = reached_model(trace)[-_MAX_MODELS:]
    queries = frozenset(_even(query) for query in trace.queries)
    said = {squeezed(said_by(run)) for run in models}
    parts = _answering(models, response)
    began = min((run.started_ns for run in parts), default=0)
    order = {id(run): (began, place) for place, run in enumerate(parts)}
    waiting = list(parts)
    behind: list[PromptBehind] = []
    known = {id(run) for run in waiting}
    while waiting:
        current = PromptBehind(waiting.pop(), trace, question or "", said, excerpts=len(behind) < _MAX_SEARCHED)
        behind.append(current)
        for earlier in models:
            if id(earlier) in known or not _ended_before(earlier, current.run):
                continue
            if any(current.quotes(words) for words in _words_of(earlier) if _even(words) not in queries):
                known.add(id(earlier))
                waiting.append(earlier)
    return sorted(behind, key=lambda prompt: order.get(id(prompt.run), (prompt.run.started_ns, 0)))


def reached_model(trace: Trace) -> list[ModelRun]:
    """The calls of models that may have served the answer: not those that a retriever makes for itself."""
    return [run for run in (*trace.models_before, *trace.models) if not run.inside_search]


def _ended_before(earlier: ModelRun, later: ModelRun) -> bool:
    return not earlier.beside_search and earlier.error is None and 0 < earlier.ended_ns <= later.started_ns


def _answering(models: Sequence[ModelRun], response: str | None) -> list[ModelRun]:
    """The calls whose words the caller got; if their words were changed on the way, the likeliest one."""
    answer = _bare(response or "")
    if not answer:
        return list(models[-1:])
    same = [
        run
        for run in models
        if _bare(said_by(run)) == answer or (run.reply and calls_text(run.reply.calls) == response)
    ]
    spoke = [run for run in models if said_by(run).strip()]
    if same or not spoke:
        return (same or list(models))[-1:]
    quoted = [run for run in spoke if _is_part(_bare(said_by(run)), answer) or _is_field(said_by(run), response or "")]
    if quoted:
        return sorted(quoted, key=lambda run: answer.find(_bare(said_by(run))))
    replied = [run for run in models if run.reply is not None] or spoke
    alike = [(_likeness(run, answer), run) for run in replied]
    best = max(likeness for likeness, _ in alike)
    return [run for likeness, run in alike if likeness == best][-1:] if best >= _MIN_LIKENESS else replied[-1:]


def said_by(run: ModelRun) -> str:
    """The text that a model said: all of it, or what it had streamed when it was cut off."""
    return joined(run.tokens) if run.reply is None else run.reply.text


def _is_part(words: str, answer: str) -> bool:
    """Whether a reply of at least two words is a part of the answer, or the answer a part of the reply."""
    if word_count(words) < 2 or word_count(answer) < 2:  # noqa: PLR2004  see above
        return False
    return words in answer or answer in words


def _is_field(words: str, answer: str) -> bool:
    """Whether a reply stands in the answer as a field of an object."""
    return words.strip() in {text.strip() for text in texts_in(json_in(answer))}


def _likeness(run: ModelRun, answer: str) -> float:
    said = _bare(" ".join(_words_of(run)))[:_COMPARED]
    return difflib.SequenceMatcher(None, said.split(), answer[:_COMPARED].split(), autojunk=False).ratio()


def _words_of(run: ModelRun) -> list[str]:
    """What a model said, also in parts: the fields of a JSON text, and the texts in its tool calls."""
    text = said_by(run)
    texts = [text] if text.strip() else []
    if text.lstrip().startswith(("{", "[", "```")):
        texts += texts_in(json_in(text))
    return [*texts, *(texts_in(run.reply.calls) if run.reply is not None else ())]


def _units(text: str) -> Iterable[str]:
    """The lines of a text without list marks, the whole, and the fields if it is JSON; short ones only."""
    if len(text) <= _MAX_UNIT:
        yield _even(text)
    for line in islice(_line.finditer(text), _MAX_LINES):
        unit = _even(_list_mark.sub("", line.group()))
        if unit:
            yield unit
    if len(text) <= _MAX_JSON:
        for field in texts_in(json_in(text)):
            yield _even(field)


def _bare(text: str) -> str:
    """The words of a text, without case and punctuation."""
    return " ".join(re.findall(r"\w+", text.casefold()))


def _even(text: str) -> str:
    return " ".join(text.split())
