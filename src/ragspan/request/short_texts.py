"""Where short texts stand by themselves in a prompt: one word, or a few, may stand anywhere in instructions."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import islice

from ragspan.matching import Match, PromptTexts, words_of
from ragspan.request.templates import FilledTexts

SHORT = 24
"""Characters: a longer document is looked for wherever it may be."""
_MAX_LENGTH = 50_000
_MAX_LOOKED_AT = 200_000
_MAX_TEXTS = 1000


def place_short(prompts: PromptTexts, short: Sequence[str], held: dict[int, list[tuple[Match, str]]]) -> None:
    """Place short documents whose words stand in one line with other marks between ("(Ada)-[:knows]->(Bo)"), beside others."""
    known = {text for own in held.values() for _, text in own}
    wanted = {
        text: re.compile(rf"(?<!\w){_other_marks.join(map(re.escape, words_of(text)))}(?!\w)", re.IGNORECASE)
        for text in short[:_MAX_TEXTS]
        if text not in known and len(text.split()) > 1
    }
    for number, part in enumerate(prompts.parts) if wanted else ():
        if number in prompts.silent or len(part) > _MAX_LENGTH:
            continue
        found = [(text, match.span()) for text, each in wanted.items() if (match := each.search(part)) is not None]
        for text, span in (
            found if len(found) + len(held.get(number, ())) > 1 else ()
        ):  # one alone may be an instruction
            if prompts.is_free(number, *span):
                prompts.claim(number, *span, 1)
                held.setdefault(number, []).append((Match(number, *span, whole=True, text=text), text))


_other_marks = r"[^\w\n]{0,8}_?[^\w\n]{0,8}"


def stands_apart(text: str, part: str, match: Match, filled: FilledTexts, others: Collection[str]) -> bool:
    """Whether a short document stands in a part by itself, as a template's value or without words around it; a heading does not."""
    own = r"\W+".join(map(re.escape, text.split()))
    wanted = re.compile(
        rf"(?<!\w){own if len(text.split()) == len(words_of(text)) else re.escape(text.strip())}(?!\w)", re.IGNORECASE
    )
    if any(wanted.search(value[:_MAX_LOOKED_AT]) for value in filled.get(part, ())):
        return True
    found = islice(wanted.finditer(part[:_MAX_LOOKED_AT]), _MAX_TEXTS)
    for start, end in (match.span, *(each.span() for each in found)):
        before, after = part[part.rfind("\n", 0, start) + 1 : start], part[end:].partition("\n")[0]
        if after.lstrip(" *_\"'”").startswith(":"):
            continue
        if not (before.rstrip(" ")[-1:].isalnum() or after.lstrip(" ")[:1].isalnum()):
            return True
        if all(word in others for word in words_of(f"{before[-SHORT * 8 :]} {after[: SHORT * 8]}")):
            return True
    return False
