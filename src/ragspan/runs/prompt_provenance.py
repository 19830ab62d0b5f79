"""Which calls of models stand behind an answer.

They are the call whose words the caller got, and earlier calls whose words stand in such a call's prompt: partial answers,
notes, drafts, the answer of another agent. What a model says only about a document (a grade, a choice) and what it writes
only to search with do not make its prompt one of these.
"""

from __future__ import annotations

import enum
import functools
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice

from ragspan.matching import Held, PromptTexts, PromptWords, Speech, words_of
from ragspan.runs.documents import SeenDocuments
from ragspan.runs.payloads import Document, Message, calls_text, evened, json_in, texts_in
from ragspan.runs.tree import ModelStep, SeenDocument

Found = tuple[SeenDocument, str, bool]
"""A document in a prompt, its text, and whether nothing of it is missing."""

_MAX_MODELS = 1000
_MAX_SAID_BY_ALL = 1_000_000
"""Characters of what models said that are compared with the answer."""
_MAX_JSON = 100_000
_MAX_COMPARED = 20_000
"""Characters of a message that are compared."""
_MAX_FIELDS = 1000
_MAX_ENTRIES = 50
_LOOKED_AT = 500
_MIN_WORDS = 8
"""Of a text beside a document's own: a title or an address is none."""
_MAX_VERDICT = 40
_MAX_RESULT = 2000
_MIN_LIKENESS = 0.5

_GOOD = {"yes", "true", "relevant", "correct", "good", "pass"}
_BAD = {"no", "false", "irrelevant", "incorrect", "bad", "fail"}


def documents_behind(
    seen: SeenDocuments, models: Sequence[ModelStep], question: str | None, response: str | None
) -> tuple[list[Found], bool]:
    """The documents in the prompts behind an answer, in prompt order, and False if there may be more of them."""
    models, documents = models[-_MAX_MODELS:], seen.all
    return documents_in_prompts(
        documents, models, _answering(models, response) if documents else (), seen.queries, question
    )


def documents_in_prompts(
    documents: Sequence[SeenDocument],
    models: Sequence[ModelStep],
    answering: Sequence[ModelStep],
    queries: Iterable[str],
    question: str | None,
) -> tuple[list[Found], bool]:
    """Those of these documents that are in the prompts behind an answer, and False if there may be more of them.

    The prompts are in order of time; those of the answer's parts in the order of the parts.

    Args:
        documents: what may be in a prompt.
        models: the calls that may stand behind the answer.
        answering: those whose words the caller got.
        queries: what was searched with.
        question: the user's own words, which are no document even if they quote one.
    """
    if not documents:
        return [], True
    provenance = _Provenance(models, answering, queries)
    found, is_complete = _find(provenance, answering, documents, question or "")
    if found or not is_complete:
        return found, is_complete
    return _find(provenance, answering, _texts_beside(documents), question or "")


def _texts_beside(documents: Sequence[SeenDocument]) -> list[SeenDocument]:
    """What documents hold beside their own text, as documents: an index of summaries or questions has the passages there.

    A text that several have says something of their source.
    """
    texts = (
        SeenDocument(Document(text, entry.document.id, entry.document.metadata), entry.rank, entry.score, entry.carried)
        for entry in documents
        for text in islice(entry.document.metadata.values(), _MAX_ENTRIES)
        if type(text) is str and len(text[:_LOOKED_AT].split()) >= _MIN_WORDS
    )
    beside = list(islice(texts, _MAX_FIELDS))
    times = Counter(entry.text for entry in beside)
    return [entry for entry in beside if times[entry.text] == 1]


def _find(
    provenance: _Provenance, answering: Sequence[ModelStep], documents: Sequence[SeenDocument], question: str
) -> tuple[list[Found], bool]:
    """Those of these documents that are in the prompts behind an answer."""
    if not documents:
        return [], True
    has_history = bool(provenance.earlier) and any(entry.carried for entry in documents)
    if len(answering) == 1 and not has_history and not provenance.candidates(answering[0]):
        return _documents_of(answering[0], documents, question, provenance)
    return _documents_of_several(provenance, answering, documents, question)


def _documents_of(
    run: ModelStep, documents: Sequence[SeenDocument], question: str, provenance: _Provenance
) -> tuple[list[Found], bool]:
    """The documents in one prompt."""
    turns = (_Turn.THIS, _Turn.EARLIER)  # a document that stands in both has its place in this one
    given = [part.text for turn in turns for part in run.prompt if provenance.turn_of(part) is turn]
    texts = [run.seen.get(entry, entry.text) for entry in documents]
    prompt = PromptTexts(given, apart=question)
    matches = zip(documents, prompt.find(texts, once=True), strict=True)
    found = sorted(((own[0], entry) for entry, own in matches if own), key=lambda item: (item[0].part, item[0].start))
    return [(entry, match.text, match.whole) for match, entry in found], prompt.is_complete


def _documents_of_several(
    provenance: _Provenance, answering: Sequence[ModelStep], documents: Sequence[SeenDocument], question: str
) -> tuple[list[Found], bool]:
    """The documents in the prompts of several calls, which share most of their parts if they are an agent's."""
    prompts = PromptTexts(provenance.texts, apart=question, silent=provenance.silent)
    entries = {entry.text: entry for entry in reversed(documents)}
    entries |= {entry.text: entry for entry in reversed(documents) if not entry.carried}
    for run in reversed(provenance.models):
        entries |= {text: entry for entry, text in run.seen.items() if text is not entry.text}
    by_part: dict[int, list[tuple[int, str, Found]]] = {}
    for (text, entry), matches in zip(entries.items(), prompts.find(list(entries)), strict=True):
        for match in matches:
            if not (entry.carried and match.part in provenance.earlier):
                by_part.setdefault(match.part, []).append((match.start, text, (entry, match.text, match.whole)))
    found: dict[tuple[SeenDocument, str], Found] = {}
    for run in provenance.behind(answering, prompts):
        for part in sorted(provenance.parts_of(run), key=provenance.earlier.__contains__):
            for _, wanted, own in sorted(by_part.pop(part, ()), key=lambda item: item[0]):
                known = found.setdefault((own[0], wanted), own)
                if not known[2] and (own[2] or len(own[1]) > len(known[1])):
                    found[own[0], wanted] = own  # a prompt that has more of it
    return list(found.values()), prompts.is_complete


class _Turn(enum.Enum):
    """The turn that a part of a prompt belongs to."""

    THIS = enum.auto()
    """Of this turn: any document in it counts."""
    EARLIER = enum.auto()
    """History: a document in it counts if this request found it, since programs put documents before the history, too."""
    SPOKEN = enum.auto()
    """A model's words, which hold no documents even if they quote some."""


def _turns_of(parts: Sequence[Message], was_said: Callable[[str], bool]) -> list[_Turn]:
    """The turns of a prompt's parts.

    An earlier turn ends with an assistant's message between two of a person's that no model gave in this request. Other
    assistant's messages that no model gave are of the program's making, and may hold documents.

    Args:
        parts: the prompt.
        was_said: whether a model said a text in this request.
    """
    people = [place for place, part in enumerate(parts) if part.role == "human"]
    made = {place for place, part in enumerate(parts) if part.role == "ai" and not was_said(part.text)}
    end = max((place for place in made if people and people[0] < place < people[-1]), default=-1)

    def turn(place: int, role: str) -> _Turn:
        if role == "ai":
            return _Turn.THIS if place > end and place in made else _Turn.SPOKEN
        return _Turn.EARLIER if place < end and role != "system" else _Turn.THIS

    return [turn(place, part.role) for place, part in enumerate(parts)]


def _squeezed(text: str) -> str:
    """Without white space, which differs between a reply and the message made of it."""
    return "".join(text[:_MAX_COMPARED].split())


class _Provenance:
    """Which calls stand behind others, by the parts of their prompts.

    Args:
        models: the calls that may stand behind the answer.
        answering: those whose words the caller got.
        queries: what was searched with.
    """

    def __init__(self, models: Sequence[ModelStep], answering: Sequence[ModelStep], queries: Iterable[str]) -> None:
        self.models = models
        self._queries = frozenset(evened(query) for query in queries)
        self._numbers: dict[tuple[bool, str], int] = {}
        self._parts: dict[int, dict[int, None]] = {}
        self._results: dict[int, str] = {}
        self._turns: dict[int, _Turn] = {}
        said = {_squeezed(run.said) for run in models}
        was_said = functools.cache(lambda text: _squeezed(text) in said)  # an agent's prompts repeat their parts
        for run in dict.fromkeys((*answering, *models)):
            own = self._parts[id(run)] = {}
            for part, turn in zip(run.prompt, _turns_of(run.prompt, was_said), strict=True):
                number = self._numbers.setdefault((part.role == "ai", part.text), len(self._numbers))
                own[number] = None
                self._turns.setdefault(number, turn)  # the first prompt is that of the answer, and decides
                if part.role == "tool":
                    self._results[number] = part.text
        self._words = {id(run): self._said(run) for run in models}

    @property
    def texts(self) -> list[str]:
        """The distinct parts of all prompts; those of the answer come first."""
        return [text for _, text in self._numbers]

    @property
    def silent(self) -> list[int]:
        """The numbers of the parts that are a model's own words, which hold no documents."""
        return [number for number, turn in self._turns.items() if turn is _Turn.SPOKEN]

    @functools.cached_property
    def earlier(self) -> frozenset[int]:
        """The numbers of the parts that are of earlier turns."""
        return frozenset(number for number, turn in self._turns.items() if turn is _Turn.EARLIER)

    def turn_of(self, part: Message) -> _Turn:
        """The turn that a part of one of the prompts belongs to."""
        return self._turns[self._numbers[part.role == "ai", part.text]]

    def parts_of(self, run: ModelStep) -> Iterable[int]:
        """The numbers of a prompt's parts, in order."""
        return self._parts[id(run)]

    def candidates(self, later: ModelStep) -> list[ModelStep]:
        """The calls that may stand behind another one and add anything: an agent's call repeats all earlier ones."""
        parts = self._parts[id(later)].keys()
        return [
            run
            for run in self.models
            if self._words[id(run)] and _ended_before(run, later) and not self._parts[id(run)].keys() <= parts
        ]

    def behind(self, answering: Sequence[ModelStep], prompts: PromptTexts) -> list[ModelStep]:
        """The calls behind an answer, in order of time."""
        began = min((run.started_ns for run in answering), default=0)
        order = {id(run): (began, place) for place, run in enumerate(answering)}
        held = self._held(prompts)
        waiting = list(answering)
        behind: list[ModelStep] = []
        known = {id(run) for run in waiting}
        while waiting:
            current = waiting.pop()
            behind.append(current)
            parts = self._parts[id(current)].keys()
            for earlier in self.candidates(current):
                said = (held[text] for text in self._words[id(earlier)])
                if id(earlier) not in known and any(_are_quoted(words, parts) for words in said):
                    known.add(id(earlier))
                    waiting.append(earlier)
        return sorted(behind, key=lambda run: order.get(id(run), (run.started_ns, 0)))

    def _held(self, prompts: PromptTexts) -> dict[str, Held]:
        """Which parts hold what a model said; also tools' results that are a part of it, as of an inner answer."""
        said = list(dict.fromkeys(text for own in self._words.values() for text in own))
        held = Speech(prompts).held(said)
        results = {number: words_of(text[:_MAX_RESULT])[0] for number, text in self._results.items()}
        read = PromptWords([own.words for own in held])
        for (number, words), places in zip(results.items(), read.places_of(list(results.values())), strict=True):
            for place in places if len(words) > 1 else ():
                held[read.part_of(place)].as_line.add(number)
        return dict(zip(said, held, strict=True))

    def _said(self, run: ModelStep) -> list[str]:
        """What a model said, without grades and queries."""
        return [text for text in _words_of(run) if evened(text) not in self._queries and not _is_verdict(text)]


def _ended_before(earlier: ModelStep, later: ModelStep) -> bool:
    return not earlier.beside_search and earlier.error is None and 0 < earlier.ended_ns <= later.started_ns


def _answering(models: Sequence[ModelStep], response: str | None) -> list[ModelStep]:
    """The calls whose words the caller received; if these were changed on the way, the likeliest call."""
    answer, _ = words_of(response or "")
    most = _MAX_SAID_BY_ALL // max(1, len(models))
    said = {id(run): words_of(run.said, most) for run in models}
    spoke = [run for run in models if said[id(run)][0]]
    if not answer:
        return list(models[-1:])
    same = [run for run in models if said[id(run)][0] == answer or _said_just(run, response or "", answer, most)]
    if same or not spoke:
        return (same or list(models))[-1:]
    fields = _fields_in(response or "")
    starts = PromptWords([answer]).places_of([said[id(run)][0] for run in spoke])
    quoted = {}
    for run, places in zip(spoke, starts, strict=True):
        words = said[id(run)][0]
        is_part = bool(places) or f" {' '.join(answer)} " in f" {' '.join(words)} "
        if (is_part and len(words) > 1 and len(answer) > 1) or run.said.strip() in fields:
            quoted[id(run)] = places[0] if places else -1
    if quoted:
        return sorted((run for run in spoke if id(run) in quoted), key=lambda run: quoted[id(run)])
    replied = [run for run in models if run.reply is not None] or spoke
    wanted = Counter(answer)
    alike = [(_likeness(run, wanted, most), run) for run in replied]
    best = max(likeness for likeness, _ in alike)
    return [run for likeness, run in alike if likeness == best][-1:] if best >= _MIN_LIKENESS else replied[-1:]


def _are_quoted(words: Held, parts: AbstractSet[int]) -> bool:
    """Whether one of these parts of a prompt holds what a model said, other than inside a document."""
    return not parts.isdisjoint(words.as_line) or (
        parts.isdisjoint(words.in_found) and not parts.isdisjoint(words.free)
    )


def _said_just(run: ModelStep, response: str, answer: Sequence[str], most: int) -> bool:
    """Whether a call said this as a text, as a field of an object, or as the arguments of a tool call."""
    if run.said == response or (run.reply is not None and calls_text(run.reply.arguments) == response):
        return True
    return any(words_of(text[:most])[0] == answer for text in _words_of(run))


def _likeness(run: ModelStep, answer: Counter[str], most: int) -> float:
    """The share of words that what a model said has in common with the answer."""
    said = Counter(words_of(" ".join(_words_of(run)), most)[0])
    return 2 * (said & answer).total() / max(1, said.total() + answer.total())


def _words_of(run: ModelStep) -> list[str]:
    """What a model said, also in parts: the fields of a JSON text, and the texts in its tool calls."""
    text = run.said
    texts = [text] if text.strip() else []
    calls = texts_in(run.reply.arguments) if run.reply is not None else ()
    return [*texts, *_fields_in(text), *islice(calls, _MAX_FIELDS)]


def _fields_in(text: str) -> list[str]:
    """The texts in a text that is JSON."""
    if len(text) > _MAX_JSON or not text.lstrip().startswith(("{", "[", "```")):
        return []
    return [field.strip() for field in islice(texts_in(json_in(text)), _MAX_FIELDS)]


def _is_verdict(text: str) -> bool:
    """Whether a reply only grades."""
    return len(text) <= _MAX_VERDICT and " ".join(words_of(text)[0]) in _GOOD | _BAD
