"""Reads an answer as an answer: which of its characters state facts.

Assistants decorate what they say: citations, lists of sources, phrases that name the source, greetings, offers, questions back,
thoughts, Markdown. None of it is a claim about the world, so no judge should compare it. Marks are found by their form, in any
language; phrases by the words of the answer's language, which stand in `words`. Each expression takes time in
proportion to the text: repetitions have bounds and do not nest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import Final

from ragspan.text.framing import Framing, framed_places, framings_in, head_of_source, names_source, states_nothing_in
from ragspan.text.keys import readable
from ragspan.text.languages import ENGLISH, Language, guess
from ragspan.text.refusals import refuses
from ragspan.text.sentences import places_of
from ragspan.turns import give_turn, with_turns

MAX_CHARACTERS = 30_000  # characters of an answer that are read; the rest is left as it is
_MOST_SENTENCES = 500  # sentences that are looked at: judges read no more of an answer
_SIGN, _RAISED = re.compile(r"[^\w\s.,;'\"?!%$&+-]"), re.compile(r"[\u00b2\u00b3\u00b9\u2070-\u2079\u2460-\u2473]")
_RULES = ("---", "___")
"""Text without one of these has no marks: most answers need no further look."""
_PIECE = 1_500  # characters that are searched at once
_REACH, _WIDEST = 900, 2_500  # and behind them of what begins in them, and of a table's lines that do
_VISIBLE = re.compile(r"[^\n]")


@lru_cache(maxsize=16)  # all metrics of a record ask, one after the other
def stated(answer: str) -> str:
    """The answer, `readable`, with spaces in place of all that states no fact: each character keeps its place.

    What follows a phrase that named the source begins the sentence, with a capital.
    """
    give_turn()
    text = readable(answer[:MAX_CHARACTERS])
    if _SIGN.search(text) or (not text.isascii() and _RAISED.search(text)) or any(map(text.__contains__, _RULES)):
        for find in with_turns(_FINDERS):
            text = _blanked(text, find(text))
        text = _blanked(text, (mark.span() for mark in _matches(_LINE_MARKS, text, _WIDEST)))
    return _without_phrases(text) + answer[MAX_CHARACTERS:]


def states_nothing(answer: str) -> bool:
    """Whether an answer states no fact at all: a greeting, thanks, an offer, a question back."""
    return not any(map(str.isalnum, stated(answer)))


def _matches(pattern: re.Pattern[str], text: str, reach: int = _REACH) -> Iterator[re.Match[str]]:
    """As `finditer`, with turns for others: a piece of the text at a time."""
    at = 0
    for end in with_turns(range(_PIECE, len(text) + _PIECE, _PIECE)):
        for match in pattern.finditer(text, max(at, end - _PIECE), end + reach):
            if match.start() >= end:
                break
            yield match
            at = match.end()


def _blanked(text: str, places: Iterable[tuple[int, int]]) -> str:
    pieces, end = [], 0
    for start, stop in sorted(places):
        pieces += [text[end:start], _VISIBLE.sub(" ", text[max(end, start) : stop])]
        end = max(end, stop)
    return "".join([*pieces, text[end:]]) if pieces else text


# Thoughts

_TAGS = (
    r"(?:\w{0,12}_)?(?:(?:think|thought|reasoning|reflection)\w{0,12}|reason|plan(?:ning)?|scratchpad|analysis|monologue"
    r"|(?:tool|function)_?(?:call|use|result|response)s?)"
)
_THOUGHT_TAG = re.compile(rf"[<\[\u25c1](/?)(?:{_TAGS})[>\]\u25b7]", re.IGNORECASE)
_UNFINISHED = re.compile(r"[<\[\u25c1](?:think|reasoning)", re.IGNORECASE)
"""What opens thoughts that nothing closes; `<plan>` and `[analysis]` may be a place to fill in, or a source."""


def _thoughts(text: str) -> Iterator[tuple[int, int]]:
    """What stands between tags of thoughts and before a closing tag that nothing opens."""
    start: int | None = 0
    opened = False
    for tag in _THOUGHT_TAG.finditer(text):
        if not tag[1]:
            start, opened = tag.start() if not opened else start, True
        elif start is not None:
            yield start, tag.end()
            start, opened = None, False
    if opened and start is not None and _UNFINISHED.match(text, start):
        yield start, len(text)


def without_thoughts(answer: str) -> str:
    """An answer without what its model thought before it, which some servers leave in the text between tags."""
    end = 0
    for start, stop in _thoughts(answer) if any(mark in answer for mark in "<[\u25c1") else ():
        end = stop if not answer[end:start].strip() else end
    return answer[end:].lstrip() if end else answer


# Markdown

_LINE_MARKS = re.compile(
    r"^[ \t]{0,8}(?:```|~~~)[^\n]{0,80}$|^[ \t]{0,3}(?:>[ \t]?){1,5}(?=\D|\d{1,3}[.)]\s)"
    r"|^[ \t]{0,3}(?:#{1,6}[ \t]+\D{1,200}?|\*\*[^*\n\d]{1,100}\*\*[ \t]*:?[ \t]*|[-=*_]{3,200})$"
    r"|(?:^[^\n]{0,2000}\n)?^[ \t]{0,8}\|?[ \t]{0,8}:?-{2,80}:?[ \t]{0,8}\|[-:| \t]{0,400}$",
    re.MULTILINE,
)
"""What opens and closes code, marks of a quotation ("> 30 days" says more than), headings without a number, rules, and a table's row
of names with the rule below it."""

# Where an answer says where its facts come from

_FILE_OR_URL = re.compile(
    r"[\w)-]\.(?:pdf|docx?|html?|mdx?|txt|csv|xlsx?|pptx?|json|xml|ya?ml|rst|odt|rtf|epub)\b|(?:https?://|www\.)[^\s<>\[\]()]{1,400}",
    re.IGNORECASE,
)
_PAGE = re.compile(
    r"(?:^|[\s,;(])(?:pp?\.|pages?|pg\.|s\.|seiten?|str\.|с\.|стр\.|pág\.|págs?\.|pag\.|sayfa|sec(?:tion)?s?\.?|§{1,2}|ch(?:apter)?\.?|"
    r"clause|para(?:graph)?\.?|abschnitt|kapitel|artikel|art(?:icle)?\.?|lines?|appendix|annex|anhang|anlage|anexo|annexe|"
    r"allegato|fig(?:ure)?s?\.?|tables?|exhibit|schedule)\s?(?:\d|[A-Z]\b)|第?\s?\d{1,4}\s?(?:ページ|頁|页|章|条|條|節|节|段|款)",
    re.IGNORECASE,
)
_NUMBERED = (
    r"(?:documents?|docs?|sources?|src|refs?|references?|contexts?|ctx|passages?|chunks?|notes?|fn|results?|citations?|cite?|id|chunk_?id|web|file|page|"
    r"dokument|quelle|kontext|fuente|fonte|bron|źródło|документ|источник|kaynak|belge|文档|文檔|来源|來源|資料|文書|出典)[\s:#_.-]{0,2}"
)
_NUMBERS = rf"(?:{_NUMBERED})?#?\d{{1,3}}(?:[:.]\d{{1,3}})?(?:\s?[,;、–-]\s?(?:{_NUMBERED})?\d{{1,3}}){{0,10}}"
_MARKS = (
    re.compile(r"\s{0,2}(?:【[^】\n]{0,120}】|[\u2020\u2021]{1,3}|[〔（［]\s?\d{1,2}\s?[〕）］])"),
    re.compile(r"\s{0,2}\[\^[^\]\n]{1,40}\](?!:)"),
    re.compile(
        rf"(?:(?<=\])[,;])?\s{{0,2}}(?:\[{{1,2}}\^?\s?(?:{_NUMBERS}|\^?\w{{1,20}}(?<=\d)|[a-z](?:,\s?[a-z]){{0,5}}|[ivx]{{1,5}}|\w{{2,8}}:[\w.-]{{1,40}}"
        rf"|(?=[^\]]{{0,60}}[a-z])\w{{1,12}}(?:[-#/.:]\w{{1,12}}){{1,4}}(?<=\d))\s?\]{{1,2}}|\{{\{{?\s?{_NUMBERS}\s?\}}?\}}|\(\s?{_NUMBERED}{_NUMBERS}\s?\))(?!\(|:\s)",
        re.IGNORECASE,
    ),
    re.compile(
        r"(?:(?<=[.,;:!?)\"'»。！？])|(?<=\w{4})|(?<!\d)\s(?!\s))(?:[\u00b9\u00b2\u00b3\u2070-\u2079][\u00b9\u00b2\u00b3\u2070-\u2079,]{0,6}|[\u2460-\u2473])"
    ),
    re.compile(r"\s{0,2}(?:\ue200)?cite\W?turn\d\w{1,20}", re.IGNORECASE),
    re.compile(r"\s{1,2}\(\d{1,2}\)(?=[.!?]?\s*$|[.!?]\s)|(?<=[.!?])\s{1,2}\(\d{1,2}\)(?=\s)", re.MULTILINE),
    re.compile(r"[hw](?:ttps?://|ww\.)[^\s<>\[\]()]{1,400}", re.IGNORECASE),
)
"""Numbers in brackets and above the line, dagger marks, addresses."""
_LINK = re.compile(
    r"(\s{0,2}\(?\s?)(!?)\[(\[?[^\[\]\n]{0,200}\]?)\]\(([^()\s]{1,500})(?:\s\"[^\"\n]{0,100}\")?\)(\s?\)?)"
)
_ELEMENT = re.compile(
    r"\s{0,2}<(sup|cite|ref|a|citation|source|sources|doc|document|chunk|context|fn|footnote)\b[^<>\n]{0,300}(?:/>|>([^<\n]{0,120})</\1>)",
    re.IGNORECASE,
)
_GROUP = re.compile(
    r"\s{0,2}(?:\(((?:[^()\n]|\([^()\n]{0,20}\)){1,160})\)|\[([^\[\]\n]{1,160})\](?!\()|（([^（）\n]{1,160})）)"
)
_EDITION_AT_END = re.compile(r"(?:,?\s(?:(?:19|20)\d\d[a-z]?|v(?:ersion)?\.?\s?\d[\d.]{0,8}))+$", re.IGNORECASE)
_LIST_LINE = re.compile(
    r"\s{0,8}(?:[-*+•▪◦‣]|\(?\d{1,3}[.):\]]|\[\^?\w{1,20}\]:?|[\u00b9\u00b2\u00b3\u2070-\u2079]{1,3})\s{0,4}"
)
_ANSWER = r'"(?:\w{0,20}_)?(?:answer|response|result|output|reply|summary|text|content|message)\w{0,10}"\s{0,2}:'
_OBJECT = re.compile(rf"\s{{0,80}}(?:```\w{{0,10}}\s{{0,2}})?\{{.{{0,2000}}?{_ANSWER}", re.IGNORECASE | re.DOTALL)
_MEMBER = re.compile(
    r'"\w{0,20}(?:confiden|certain|probab|score|relevan|grounded|source|citation|cited|reference|page|chunk|metadata|reasoning|thought|doc\w{0,9}id|node_?id|file|ur[li])'
    r'\w{0,20}"\s{0,2}:\s{0,9}(?:"(?:[^"\\]|\\.){0,800}"|\[[^\]]{0,800}\]|\{[^{}]{0,800}\}|[^\s,\]}]{1,40})\s{0,2},?'
    r'|"\w{1,40}"\s{0,2}:\s{0,2}(?:true|false|null)\s{0,2},?'
    rf'|{_ANSWER}|(?<!\\)"{{1,40}}\s{{0,2}},?|[{{}}]{{1,40}}|(?<!\\)\\(?:[nrt]|(?="))',
    re.IGNORECASE,
)
"""Of structured output, which is an object with an answer: how sure it is and where it is from; the answer's name; signs of JSON."""
_MOST_WORDS, _MOST_WORDS_OF_SOURCE = 9, 14


def _sources(text: str) -> Iterator[tuple[int, int]]:
    """Lists of sources, lines that name one, and the texts of footnotes."""
    in_list, at = False, 0
    for line in with_turns(text.splitlines(keepends=True)):
        bare = line.strip()
        if bare:
            head, mark = head_of_source(bare), _LIST_LINE.match(bare)
            in_list = in_list and head is None and (mark is not None or _FILE_OR_URL.search(bare) is not None)
            if head is not None:
                rest = bare[head.end() :].strip(" *_:")
                in_list = len(rest.split()) <= _MOST_WORDS_OF_SOURCE or _is_source(rest)
            is_note = mark is not None and mark[0].strip()[:1] in "[¹²³"
            is_note = is_note and (bare.startswith("[^") or _is_source(bare[mark.end() :] if mark else ""))
            if in_list or is_note:
                yield at, at + len(line.rstrip("\n"))
        at += len(line)


def _is_source(text: str) -> bool:
    """Whether a text that stands by itself names a source: a file, an address, a page, a word for one."""
    text = text.strip(" \t.*_")
    words = len(text.split())
    if not text or words > _MOST_WORDS_OF_SOURCE:
        return False
    if _FILE_OR_URL.search(text) or head_of_source(text):
        return True
    named = _EDITION_AT_END.sub("", text)
    is_named = _PAGE.search(text) is not None or "et al" in named or names_source(named, dated=named != text)
    return words <= _MOST_WORDS and is_named


def _citations(text: str) -> Iterator[tuple[int, int]]:
    """Marks that lead to a source; of a link that stands in a sentence what is not its text."""
    for link in _matches(_LINK, text) if "](" in text else ():
        _, picture, words, _, closing = link.groups()
        bare, is_grouped = words.strip("[]^ "), bool(link[1].strip() and link[5].strip())
        if picture or is_grouped or bare.isdigit() or bare.lower() == "link" or _is_source(bare):
            yield link.span() if is_grouped else (link.start(2), link.end(4) + 1)
        else:
            yield link.start(3) - 1, link.start(3)
            yield link.end(3), link.end() - len(closing)
    for element in _matches(_ELEMENT, text) if "<" in text else ():
        content = (element[2] or "").strip()
        if not content.strip("[](), 0123456789") or _is_source(content):
            yield element.span()
    for group in _matches(_GROUP, text):
        inside = next(filter(None, group.groups()))
        if _is_source(inside):
            yield group.span()
    for pattern in (_MEMBER, *_MARKS) if _OBJECT.match(text) else _MARKS:
        yield from (match.span() for match in _matches(pattern, text))


_FINDERS: Final = (_thoughts, _sources, _citations)

# Sentences

_LIST_FOLLOWS = re.compile(r"\s*(?:\||\s{0,8}(?:[-*+•▪◦‣]|\(?\d{1,3}[.)])\s)")
"""What a sentence announces that ends with a colon: "The benefits are:"."""


def _without_phrases(text: str) -> str:
    """The text without sentences that are only polite or ask, and without the phrases of others that name the source."""
    guessed = guess(text, enough=1)
    language, spoken, lowered = guessed or ENGLISH, framings_in(guessed), text.lower()
    if not any(map(lowered.__contains__, "?؟？:：")) and not any(framing.may_frame(lowered) for framing in spoken):
        return text
    found: list[tuple[int, int]] = []
    for start, end in with_turns(islice(places_of(text, language), _MOST_SENTENCES)):
        sentence = text[start:end]
        if sentence.endswith((":", "：")) and _LIST_FOLLOWS.match(text, end):
            found += [] if any(map(str.isdigit, sentence)) else [(start, end)]
            continue
        likely = [framing for framing in spoken if framing.may_frame(sentence.lower())]
        for begins, ends in _phrases_in(sentence, likely, language) if likely or sentence[-1] in "?؟？)" else ():
            found.append((start + begins, start + ends))
            capital = text[start + ends : start + ends + 1].upper()
            if ends < len(sentence) and len(capital) == 1:
                text = text[: start + ends] + capital + text[start + ends + 1 :]
    return _blanked(text, found)


def _phrases_in(sentence: str, spoken: Sequence[Framing], language: Language) -> Sequence[tuple[int, int]]:
    """What of a sentence states nothing: all of one that is polite or asks, or the phrases that name its source."""
    whole = [(0, len(sentence))]
    if not any(map(sentence.__contains__, ":：")) and states_nothing_in(sentence, spoken):
        return whole
    framed = list(framed_places(sentence, spoken))
    opened = 0
    for begins, ends in framed:
        opened = ends if begins == opened else opened
    # In "Here is the answer: no refunds." something is left, and nothing in "Based on the article, here is a summary:".
    if not any(map(str.isalnum, sentence[opened:])) or states_nothing_in(sentence[opened:], spoken):
        return whole
    # "Based on the context, it is not possible to say": of what it says that nothing is known belongs to it
    return [] if framed and refuses(sentence, language) else framed
