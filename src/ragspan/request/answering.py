"""What the models of a request said, and which calls said the answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice

from ragspan.matching import PromptWords, words_of
from ragspan.request.contents import calls_text, json_in, texts_in
from ragspan.request.tree import ModelStep

_MAX_SAID_BY_ALL = 1_000_000
"""Characters of what models said that are compared with the answer."""
_MAX_JSON = 100_000
_MAX_COMPARED = 20_000
"""Characters of a message that are compared."""
_MAX_FIELDS = 1000
_MAX_VERDICT = 40
_FEW = 20
"""Texts that are looked for one by one."""
_MIN_LIKENESS = 0.5
_SHARED = 8
"""Words in a row that a response has from a model."""
_GOOD = {"yes", "true", "relevant", "correct", "good", "pass"}
_BAD = {"no", "false", "irrelevant", "incorrect", "bad", "fail"}


def answering_calls(models: Sequence[ModelStep], response: str | None) -> list[ModelStep]:
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
    starts = _starts_in(answer, [said[id(run)][0] for run in spoke])
    whole = f" {' '.join(answer)} "
    quoted = {}
    for run in spoke:
        words = said[id(run)][0]
        start = starts.get(tuple(words), -1)
        is_part = start >= 0 or (len(words) > len(answer) and whole in f" {' '.join(words)} ")
        if (is_part and len(words) > 1 and len(answer) > 1) or run.said.strip() in fields:
            quoted[id(run)] = start
    if quoted:
        return sorted((run for run in spoke if id(run) in quoted), key=lambda run: quoted[id(run)])
    replied = [run for run in models if run.reply is not None] or spoke
    wanted = Counter(answer)
    alike = [(_likeness(run, wanted, len(answer), most), run) for run in replied]
    best = max(likeness for likeness, _ in alike)
    return [run for likeness, run in alike if likeness == best][-1:] if best >= _MIN_LIKENESS else replied[-1:]


def is_said_by(models: Sequence[ModelStep], response: str) -> bool:
    """Whether a response is what these calls said, in part or reworded, and not a sentence of the program's own."""
    answer, _ = words_of(response[:_MAX_COMPARED])
    most = _MAX_SAID_BY_ALL // max(1, len(models))
    texts = [text for run in models for text in [run.said, *words_said_by(run)]]
    said = [words for text in dict.fromkeys(texts) if (words := words_of(text, most)[0])]
    if not answer or any(answer == words for words in said):
        return True
    if _starts_in(answer, said):
        return True
    read = PromptWords(said)
    if any(sum(run.length for run in runs) >= _SHARED for runs in read.runs(answer, 0).values()):
        return True
    if read.positions_of([answer])[0]:
        return True
    wanted = Counter(answer)
    return any(2 * (Counter(words) & wanted).total() >= len(words) + len(answer) * _MIN_LIKENESS for words in said)


def _starts_in(answer: Sequence[str], said: Iterable[Sequence[str]]) -> dict[tuple[str, ...], int]:
    """Where texts begin in an answer that has all of their words in a row; only the order of these numbers means anything."""
    texts = list(dict.fromkeys(map(tuple, said)))
    if len(texts) <= _FEW:  # an index of the answer takes longer
        whole = f" {' '.join(answer)} "
        starts = [whole.find(f" {' '.join(words)} ") for words in texts]
    else:
        starts = [next(iter(found), -1) for found in PromptWords([answer]).positions_of(list(map(list, texts)))]
    return {words: start for words, start in zip(texts, starts, strict=True) if start >= 0}


def _said_just(run: ModelStep, response: str, answer: Sequence[str], most: int) -> bool:
    """Whether a call said this as a text, as a field of an object, or as the arguments of a tool call."""
    if run.said == response or (run.reply is not None and calls_text(run.reply.arguments) == response):
        return True
    return any(words_of(text[:most])[0] == answer for text in words_said_by(run))


def _likeness(run: ModelStep, answer: Counter[str], length: int, most: int) -> float:
    """The share of words that what a model said has in common with the answer."""
    said = Counter(words_of(" ".join(words_said_by(run)), most)[0])
    return 2 * (said & answer).total() / max(1, said.total() + length)


def words_said_by(run: ModelStep) -> list[str]:
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


def is_one_word(text: str) -> bool:
    return len(text) <= _MAX_VERDICT and len(words_of(text)[0]) == 1


def is_verdict(text: str) -> bool:
    """Whether a reply only grades."""
    return len(text) <= _MAX_VERDICT and " ".join(words_of(text)[0]) in _GOOD | _BAD
