"""Reads an answer as an answer: which of its characters state facts, and what the others are.

Assistants decorate what they say: citations, lists of sources, phrases that name the source, greetings, offers, questions back,
thoughts, Markdown. None of it is a claim about the world, so no judge should compare it. Marks are found by their form, in any
language; phrases by the words of the answer's language, which stand in `languages/words`.

Each expression takes time in proportion to the text: repetitions have bounds and do not nest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from itertools import islice

from ragspan.text.citations import citations, sources
from ragspan.text.framing import framings_of, kind_of, likely, places
from ragspan.text.keys import readable
from ragspan.text.languages import ENGLISH, Language, guess
from ragspan.text.languages import language as language_of
from ragspan.text.parts import Part, found, marked
from ragspan.text.refusals import refuses
from ragspan.text.sentences import pieces_of
from ragspan.text.turns import turn

MAX_CHARACTERS = 30_000
"""Characters of an answer that are read; the rest is left as it is."""


def parts_of(answer: str, language: Language | None = None) -> tuple[Part, ...]:
    """The parts of an answer that state no fact, in the answer's order; they do not overlap.

    Args:
        answer: as the assistant wrote it.
        language: the answer's; guessed if it is None.
    """
    return _parts_of(answer[:MAX_CHARACTERS], None if language is None else language.code)


@lru_cache(maxsize=16)  # all metrics of a record ask, one after the other
def _parts_of(answer: str, code: str | None) -> tuple[Part, ...]:
    text = readable(_unescaped(answer))
    parts: list[Part] = []
    in_code = _code(text)
    cited, emphasised = partial(citations, code=in_code), partial(_emphasis, code=in_code)
    for find in (_thoughts, _wrapping, _code_fences, _quotes, sources, cited, _headings, emphasised):
        turn()
        parts += (some := list(find(text)))
        text = _blanked(text, some)
    whole = list(_of_sentences(text, language_of(code) if code else guess(text, enough=1) or ENGLISH))
    taken = marked(len(text), [(part.start, part.end) for part in whole])
    parts = [part for part in parts if not any(taken[part.start : part.end])]
    return tuple(sorted(parts + whole, key=lambda part: part.start))


def stated(answer: str, language: Language | None = None) -> str:
    """The answer with spaces in place of all that states no fact: each character keeps its place.

    What follows a phrase that named the source begins the sentence, with a capital.
    """
    return _stated(answer, None if language is None else language.code)


@lru_cache(maxsize=16)
def _stated(answer: str, code: str | None) -> str:
    parts = _parts_of(answer[:MAX_CHARACTERS], code)
    text = _blanked(_unescaped(answer), parts)
    for part in parts:
        capital = text[part.end : part.end + 1].upper()
        if part.kind == "framing" and len(capital) == 1:
            text = text[: part.end] + capital + text[part.end + 1 :]
    return text


def states_nothing(answer: str) -> bool:
    """Whether an answer states no fact at all: a greeting, thanks, an offer, a question back."""
    return not any(map(str.isalnum, stated(answer)))


def _blanked(text: str, parts: Sequence[Part]) -> str:
    if not parts:
        return text
    pieces, end = [], 0
    for part in sorted(parts, key=lambda part: part.start):
        pieces += [text[end : part.start], re.sub(r"[^\n]", " ", text[part.start : part.end])]
        end = max(end, part.end)
    return "".join([*pieces, text[end:]])


# Thoughts

_TAGS = (
    r"(?:\w{0,12}_)?(?:(?:think|thought|reasoning|reflection)\w{0,12}|reason|plan(?:ning)?|scratchpad|analysis|monologue"
    r"|(?:tool|function)_?(?:call|use|result|response)s?)"
)
_THOUGHT_TAG = re.compile(rf"[<\[\u25c1](/?)(?:{_TAGS})[>\]\u25b7]", re.IGNORECASE)
_UNFINISHED = re.compile(r"[<\[\u25c1](?:think|reasoning)", re.IGNORECASE)
"""What opens thoughts that nothing closes; `<plan>` and `[analysis]` may be a place to fill in, or a source."""
_STEP = re.compile(r"^(?:thought|action|observation)(?: input)?:", re.IGNORECASE | re.MULTILINE)
_FINAL = re.compile(r"^final answer:", re.IGNORECASE | re.MULTILINE)
_MESSAGE = "<|message|>"
"""What stands before the text of each channel of a reply."""


def _thoughts(text: str) -> Iterator[Part]:
    """What stands between tags of thoughts, before a closing tag that nothing opens, and in steps before the final answer."""
    if (last := text.rfind(_MESSAGE)) >= 0:
        yield Part(kind="thought", start=0, end=last + len(_MESSAGE))
        return
    final = next(found(_FINAL, ("inal ", "INAL "), text), None)
    if final is not None and (step := _STEP.search(text, 0, final.start())):
        yield Part(kind="thought", start=step.start(), end=final.start())
        return
    start: int | None = 0
    opened = False
    for tag in found(_THOUGHT_TAG, "<[\u25c1", text):
        if not tag[1]:
            start = tag.start() if not opened else start
            opened = True
        elif start is not None:
            yield Part(kind="thought", start=start, end=tag.end())
            start, opened = None, False
    if opened and start is not None and _UNFINISHED.match(text, start):
        yield Part(kind="thought", start=start, end=len(text))


_THOUGHT_BEFORE = re.compile(
    rf"\s*(?:[<\[\u25c1]({_TAGS})[>\]\u25b7].*?[<\[\u25c1]/\1[>\]\u25b7]|<think(?:ing)?>.*\Z)\s*",
    re.IGNORECASE | re.DOTALL,
)


def without_thoughts(answer: str) -> str:
    """An answer without what its model thought before it, which some servers leave in the text between tags."""
    while thought := _THOUGHT_BEFORE.match(answer):
        answer = answer[thought.end() :]
    before, closing, rest = answer.partition("</think>")  # some servers leave the opening tag out
    return rest.lstrip() if closing and "<think>" not in before else answer


# Replies in JSON

_IN_JSON = re.compile(
    r'"(?:final_?)?(?:answer|response|output|reply)"\s{0,20}:\s{0,20}"((?:[^"\\]|\\.){1,30000})"\s{0,20}[,}]',
    re.IGNORECASE,
)
_OPENS_JSON = re.compile(r"\s{0,20}(?:(?:```|~~~)\w{0,10}\s{1,20})?\{")


def in_json(answer: str) -> tuple[int, int] | None:
    """Where an answer stands that is a value of JSON: `{"answer": "Yes.", "sources": []}`; None for others."""
    said = _IN_JSON.search(answer) if _OPENS_JSON.match(answer) else None
    return said.span(1) if said and " " in said[1] else None


def _unescaped(answer: str) -> str:
    """An answer, of one in JSON with line ends and quotes as they are read; each character keeps its place."""
    if "\\" not in answer or (place := in_json(answer)) is None:
        return answer
    said = answer[slice(*place)].replace("\\n", " \n").replace('\\"', "''")
    return answer[: place[0]] + said + answer[place[1] :]


def _wrapping(text: str) -> Iterator[Part]:
    """The JSON around an answer."""
    if (place := in_json(text)) is not None:
        for start, end in ((0, place[0]), (place[1], len(text))):
            yield Part(kind="markup", start=start, end=end)


# Code and Markdown

_FENCES = ("```", "~~~")
_FENCE = re.compile(r"^[ \t]{0,8}(?:```|~~~)[^\n]{0,80}$", re.MULTILINE)
_INLINE_CODE = re.compile(r"`[^`\n]{1,300}`")
_HEADING = re.compile(
    r"^[ \t]{0,3}(?:#{1,6}[ \t]+[^\n]{1,200}|\*\*[^*\n]{1,100}\*\*[ \t]*:?[ \t]*|[-=*_]{3,200})$", re.MULTILINE
)
_QUOTE = re.compile(r"^[ \t]{0,3}(?:>[ \t]?){1,5}(?=\D|\d{1,3}[.)]\s)", re.MULTILINE)
_EMPHASIS = re.compile(
    r"(\*\*\*|\*\*|__|~~|==)(?=\S)[^\n*]{1,300}?(?<=\S)\1"
    r"|(?<![\w*])(\*)(?=\S)[^*\n]{1,300}?(?<=\S)\2(?![\w*])|(?<![\w/])(_)(?=\S)[^_\n]{1,300}?(?<=\S)\3(?!\w)"
)
_STYLE_TAG = re.compile(
    r"</?(?:b|i|u|em|strong|mark|small|span|p|br|div|blockquote|h[1-6]|ul|ol|li|section|(?:final_?)?(?:answer|response)|output)"
    r"(?:\s[^<>\n]{0,100})?/?>|<\|[a-z_]{1,20}\|>",
    re.IGNORECASE,
)
_TABLE_RULE = re.compile(r"^[ \t]{0,8}\|?[ \t]{0,8}:?-{2,80}:?[ \t]{0,8}\|[-:| \t]{0,400}$", re.MULTILINE)
_LAST_LINE = re.compile(r"[^\n]{0,2000}\n\Z")


def _code(text: str) -> list[tuple[int, int]]:
    """Where code stands: in backticks, and between fences."""
    fences = [line.start() for line in found(_FENCE, _FENCES, text)]
    between = list(zip(fences[::2], [*fences[1::2], len(text)], strict=False))
    return between + [match.span() for match in found(_INLINE_CODE, "`", text)]


def _code_fences(text: str) -> Iterator[Part]:
    """The lines that open and close code; the code itself may state a fact."""
    for line in found(_FENCE, _FENCES, text):
        yield Part(kind="code_fence", start=line.start(), end=line.end())


def _quotes(text: str) -> Iterator[Part]:
    """The marks before the lines of a quotation; "> 30 days" says more than."""
    for mark in found(_QUOTE, ">", text):
        yield Part(kind="markup", start=mark.start(), end=mark.end())


def _emphasis(text: str, code: Sequence[tuple[int, int]]) -> Iterator[Part]:
    """The marks around what is bold or slanted or struck out, in Markdown and HTML."""
    taken = marked(len(text), code)
    for marks in found(_EMPHASIS, "*_~=", text):
        mark = len(next(filter(None, marks.groups())))
        if not any(taken[marks.start() : marks.end()]):
            yield Part(kind="markup", start=marks.start(), end=marks.start() + mark)
            yield Part(kind="markup", start=marks.end() - mark, end=marks.end())
    for tag in found(_STYLE_TAG, "<", text):
        if not any(taken[tag.start() : tag.end()]):
            yield Part(kind="markup", start=tag.start(), end=tag.end())


def _headings(text: str) -> Iterator[Part]:
    """Headings without a number, rules, and a table's row of names with the rule below it."""
    for line in found(_HEADING, "#*-=_", text):
        if not any(map(str.isdigit, line[0])):
            yield Part(kind="heading", start=line.start(), end=line.end())
    for rule in found(_TABLE_RULE, "|", text):
        names = _LAST_LINE.search(text, max(0, rule.start() - 2001), rule.start())
        yield Part(kind="heading", start=rule.start() if names is None else names.start(), end=rule.end())


# Sentences


_MOST_SENTENCES = 500
"""Sentences that are looked at: judges read no more of an answer."""


_ITEM = re.compile(r"\s{0,8}(?:[-*+•▪◦‣]|\(?\d{1,3}[.)])\s")


def _announces(sentence: str, following: Sequence[str]) -> bool:
    """Whether a sentence only says what the list or table below it holds: "The benefits are:"."""
    if not sentence.rstrip("*_ ").endswith((":", "\uff1a")):
        return False
    marker = _ITEM.match(sentence)
    said = sentence[marker.end() :] if marker else sentence
    below = next((piece for piece in following if piece.strip()), "")
    is_list = _ITEM.match(below.lstrip("\n")) is not None or below.lstrip().startswith("|")
    return is_list and not any(map(str.isdigit, said))


def _of_sentences(text: str, language: Language) -> Iterator[Part]:
    """Sentences that are only polite or ask, and the phrases of others that name the source."""
    spoken, at = framings_of(text, language), 0
    pieces = list(islice(pieces_of(text, language), _MOST_SENTENCES))
    for number, piece in enumerate(pieces):
        turn()
        sentence = piece.strip()
        start = at + len(piece) - len(piece.lstrip())
        at += len(piece)
        if not any(map(str.isalnum, sentence)):
            continue
        said = likely(sentence, spoken)
        kind = "heading" if _announces(sentence, pieces[number + 1 : number + 5]) else kind_of(sentence, said)
        if kind is None and refuses(sentence, language):
            continue  # "Based on the context, it is not possible to say": of what it says that nothing is known belongs to it
        framed = list(places(sentence, said)) if kind in {None, "courtesy"} else []
        opened = 0
        for begins, ends in framed:
            opened = ends if begins == opened else opened
        rest = sentence[opened:]
        presents = any(map(sentence[:opened].__contains__, ":\uff1a"))  # "Here is the answer: no refunds."
        if opened and (kind is None or (kind == "courtesy" and presents)):  # "Based on the article, here is a summary:"
            kind = kind_of(rest, likely(rest, spoken)) if any(map(str.isalnum, rest)) else "courtesy"
        if kind is None and any(framing.tells_of_search(rest) for framing in spoken):
            kind = "courtesy"
        if kind is not None:
            yield Part(kind=kind, start=start, end=start + len(sentence))
            continue
        for begins, ends in framed:
            yield Part(kind="framing", start=start + begins, end=start + ends)
