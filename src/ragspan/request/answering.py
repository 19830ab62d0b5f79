"""What the models of a request said, and which calls said the answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import islice

from ragspan.matching import WordIndex, words_of
from ragspan.request.contents import calls_text, json_in, texts_in
from ragspan.request.tree import ModelStep

_MAX_SAID_BY_ALL = 1_000_000  # characters of what models said that are compared with the answer
_MAX_RESPONSE = 400_000
_MAX_JSON = 100_000
_MAX_FIELDS = 1000
_MIN_LIKENESS = 0.5
_SHARED = 8  # words in a row that a response has from a model


def answering_calls(models: Sequence[ModelStep], response: str | None) -> tuple[list[ModelStep], bool]:
    """The calls whose words the caller received, and whether the response is theirs, in part or reworded.

    If the words were changed on the way it is the likeliest call. No model said a sentence of the program's own.
    """
    response = response or ""
    same = [call for call in models if call.said == response] if response else []
    answer = words_of(response[:_MAX_RESPONSE]) if not same else []
    if same or not answer:
        return (same or list(models))[-1:], True  # as mostly
    most = _MAX_SAID_BY_ALL // max(1, len(models))
    said = {id(call): [words_of(text[:most]) for text in words_said_by(call)] for call in models}
    is_said = _is_said(answer, [words for own in said.values() for words in own if words])
    same = [
        call
        for call in models
        if answer in said[id(call)] or calls_text(call.reply and call.reply.arguments) == response
    ]
    spoke = [call for call in models if call.said.strip() and said[id(call)][0]]
    if same or not spoke:
        return (same or list(models))[-1:], is_said
    fields, whole = _fields_in(response), f" {' '.join(answer)} "
    quoted: list[tuple[int, int]] = []
    for place, call in enumerate(spoke):
        words = said[id(call)][0]
        wanted = f" {' '.join(words)} "
        start = whole.find(wanted)
        is_part = start >= 0 or (len(words) > len(answer) and whole in wanted)
        if (is_part and len(words) > 1 and len(answer) > 1) or call.said.strip() in fields:
            quoted.append((start, place))
    if quoted:
        return [spoke[place] for _, place in sorted(quoted)], is_said
    replied = [call for call in models if call.reply is not None] or spoke
    alike = []
    for call in replied:  # the share of words that both have
        own = [word for words in said[id(call)] for word in words]
        shared = (Counter(own) & Counter(answer)).total()
        alike.append((2 * shared / max(1, len(own) + len(answer)), call))
    best = max(likeness for likeness, _ in alike)
    likeliest = [call for likeness, call in alike if likeness == best] if best >= _MIN_LIKENESS else replied
    return likeliest[-1:], is_said


def _is_said(answer: Sequence[str], said: Sequence[Sequence[str]]) -> bool:
    whole, texts = f" {' '.join(answer)} ", [f" {' '.join(words)} " for words in said]
    if any(text in whole or whole in text for text in texts):
        return True
    wanted = Counter(answer)
    shared = [2 * (Counter(words) & wanted).total() - len(words) for words in said]
    return max(shared, default=-1) >= len(answer) * _MIN_LIKENESS or shares_words(answer, texts, _SHARED)


def shares_words(words: Sequence[str], texts: Sequence[str], least: int = 1) -> bool:
    """Whether one of these texts has so many of these words, in runs."""
    runs = WordIndex(texts).runs(words)
    return any(sum(run.length for run in own) >= least for own in runs.values())


def words_said_by(call: ModelStep) -> list[str]:
    """What a model said, also in parts: the fields of a JSON text, and the texts in its tool calls."""
    text = call.said
    texts = [text] if text.strip() else []
    calls = texts_in(call.reply.arguments) if call.reply is not None else ()
    return [*texts, *_fields_in(text), *islice(calls, _MAX_FIELDS)]


def _fields_in(text: str) -> list[str]:
    """The texts in a text that is JSON."""
    if len(text) > _MAX_JSON or not text.lstrip().startswith(("{", "[", "```")):
        return []
    return [field.strip() for field in islice(texts_in(json_in(text)), _MAX_FIELDS)]
