"""Which parts of prompts hold what a model said: a draft, notes, the answer of another agent."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from ragspan.matching.normalization import MAX_COST, unescaped, words_of
from ragspan.matching.prompt_texts import PromptTexts
from ragspan.matching.prompt_words import EXCERPT, FOUND, SILENT

_MIN_WORDS = 8
_MIN_SAID = 5
_MOST = 0.8
_MAX_SAID = 100_000
_MAX_LINE = 2000
_MAX_LINES = 5000
_MIN_SENTENCE = 3

_list_mark = re.compile(r"^\s*(?:[-*•>]|\d+[.):])\s+")
_sentence_end = re.compile(r"(?<=[.!?。！？])\s*")  # noqa: RUF001  Chinese and Japanese sentences end in these


@dataclass(kw_only=True, slots=True)
class Holders:
    """The parts of prompts that hold what a model said, by their numbers."""

    words: Sequence[str]
    """What was said, as it is compared."""
    free: set[int] = field(default_factory=set)
    """The parts that hold it, whole or a run of it, outside of the texts that were found."""
    in_found: set[int] = field(default_factory=set)
    """The parts that hold it inside a text that was found."""
    as_line: set[int] = field(default_factory=set)
    """The parts that have it as a line or field of its own, outside of the texts that were found."""


class Speech:
    """Looks for what models said, once the texts are found that are in the same prompts.

    Args:
        prompts: the prompts.
    """

    def __init__(self, prompts: PromptTexts) -> None:
        self._prompts = prompts
        self._lines: dict[int, set[str]] = {}

    def held(self, said: Sequence[str]) -> list[Holders]:
        """Which parts hold each of the texts that models said, whole, a sentence of it, or a run of its words.

        One word stands anywhere, so it takes two, or a line with nothing else. What looks like an excerpt of a text, and is
        no more than what a model said, are its own words.
        """
        most = MAX_COST // 3 // max(1, len(said))
        spelled = [words_of(text, most) for text in said]
        held = [Holders(words=words) for words, _ in spelled]
        self._add_holders(held)
        sentences: list[Holders] = []
        speakers: list[Holders] = []
        for own, text in zip(held, said, strict=True):
            parts = _sentence_end.split(text[:most])
            words = [words_of(part)[0] for part in parts] if len(parts) > 1 else []
            sentences += [Holders(words=sentence) for sentence in words if len(sentence) >= _MIN_SENTENCE]
            speakers += [own] * (len(sentences) - len(speakers))
        self._add_holders(sentences)
        for sentence, own in zip(sentences, speakers, strict=True):
            own.free |= sentence.free
        if any(left < 0 and not own.free for own, (_, left) in zip(held, spelled, strict=True)):
            self._prompts.miss()
        return held

    def _add_holders(self, held: Sequence[Holders]) -> None:
        prompt = self._prompts.words
        for own, positions in zip(held, prompt.positions_of([own.words for own in held]), strict=True):
            words = own.words
            for position in positions:
                part = prompt.part_of(position)
                around = (prompt.taken[position - 1], prompt.taken[position + len(words)])
                if not prompt.is_taken(position, len(words), SILENT if EXCERPT in around else EXCERPT):
                    own.free.add(part)
                elif prompt.taken[position] in {EXCERPT, FOUND}:
                    own.in_found.add(part)
            line = " ".join(words)
            own.as_line |= {part for part in own.free if line in self._lines_of(part)}
            if len(words) == 1:
                own.free.clear()
            enough = min(_MIN_WORDS, max(_MIN_SAID, _MOST * len(words)))
            for part, runs in prompt.runs(words, SILENT).items():
                if sum(run.length for run in runs) >= enough:
                    own.free.add(part)

    def _lines_of(self, part: int) -> set[str]:
        """The lines of a part without list marks, the whole, and the fields if it is JSON; short ones only."""
        if part not in self._lines:
            text = unescaped(self._prompts.parts[part][:_MAX_SAID])
            if text.lstrip().startswith(("{", "[", "```")):
                text = text.replace('"', "\n")
            lines = [_list_mark.sub("", line) for line in text.splitlines()[:_MAX_LINES] if len(line) <= _MAX_LINE]
            whole = [text] if len(text) <= _MAX_LINE else []
            self._lines[part] = {" ".join(words_of(line)[0]) for line in (*lines, *whole)}
        return self._lines[part]
