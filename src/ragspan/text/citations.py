"""Where an answer says where its facts come from: marks of citation, and lists of sources."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ragspan.text.framing import frames, head_of_source, names_source
from ragspan.text.parts import Part, found, marked

_FILE = re.compile(
    r"[\w)-]\.(?:pdf|docx?|html?|mdx?|txt|csv|xlsx?|pptx?|json|xml|ya?ml|rst|odt|rtf|epub)\b", re.IGNORECASE
)
_URL = re.compile(r"(?:https?://|www\.)[^\s<>\[\]()]{1,400}", re.IGNORECASE)
_PAGE = re.compile(
    r"(?:^|[\s,;(])(?:pp?\.|pages?|pg\.|s\.|seiten?|str\.|с\.|стр\.|pág\.|págs?\.|pag\.|sayfa|sec(?:tion)?s?\.?|§{1,2}|ch(?:apter)?\.?|"
    r"clause|para(?:graph)?\.?|abschnitt|kapitel|artikel|art(?:icle)?\.?|lines?|ll?\.|appendix|annex|anhang|anlage|anexo|annexe|"
    r"allegato|fig(?:ure)?s?\.?|tables?|exhibit|schedule)\s?(?:\d|[A-Z]\b)|第?\s?\d{1,4}\s?(?:ページ|頁|页|章|条|條|節|节|段|款)",
    re.IGNORECASE,
)
_ABOUT_SOURCE = re.compile(
    r"(?:accessed|retrieved|last updated|last modified|updated|confidence|score|relevance|similarity|certainty|ticket|slack|confluence|sharepoint|jira|notion page|"
    r"abgerufen|zugriff|stand|consulté|consultado|consultato|geraadpleegd)\b[^!?\n]{0,60}|\d{1,2}:\d\d:\d\d",
    re.IGNORECASE,
)
"""What is said of a source besides its name: when it was read, and how well it fits."""
_NUMBERED = (
    r"(?:documents?|docs?|sources?|src|refs?|references?|contexts?|ctx|passages?|chunks?|notes?|fn|results?|citations?|cite?|id|chunk_?id|web|file|page|kb|no|nr|§|№|"
    r"dokument|quelle|kontext|source|fuente|fonte|bron|źródło|документ|источник|kaynak|belge|文档|文檔|来源|來源|資料|文書|出典)"
    r"[\s:#_.-]{0,2}"
)
_NUMBERS = rf"(?:{_NUMBERED})?#?\d{{1,3}}(?:[:.]\d{{1,3}})?(?:\s?[,;、–-]\s?(?:{_NUMBERED})?\d{{1,3}}){{0,10}}"
_LETTERS = r"[a-z](?:,\s?[a-z]){0,5}|[ivx]{1,5}|[\u2460-\u2473]|\w{2,8}:[\w.-]{1,40}|(?=[^\]]{0,60}[a-z])\w{1,12}(?:[-#/.:]\w{1,12}){1,4}(?<=\d)"
_BRACKETED = re.compile(
    rf"(?:(?<=\])[,;])?\s{{0,2}}(?:\[{{1,2}}\^?\s?(?:{_NUMBERS}|\^?\w{{1,20}}(?<=\d)|{_LETTERS})\s?\]{{1,2}}|\(\(\s?{_NUMBERS}\s?\)\)|\{{\{{?\s?{_NUMBERS}\s?\}}?\}}|\(\s?{_NUMBERED}{_NUMBERS}\s?\))(?!\(|:\s)",
    re.IGNORECASE,
)
_NOTE = re.compile(r"\s{0,2}\[\^[^\]\n]{1,40}\](?!:)")
_LENTICULAR = re.compile(
    r"\s{0,2}(?:【[^】\n]{0,120}】|⟦[^⟧\n]{0,120}⟧|[\u2020\u2021]{1,3}|[\U0001f4c3\U0001f4c4\U0001f4ce\U0001f4d1\U0001f4d6\U0001f4da\U0001f517]\ufe0f?\s?\d{1,2}(?=[.,;:!?)](?!\d)|\s*$)|[〔（［]\s?\d{1,2}\s?[〕）］])",
    re.MULTILINE,
)
_COUNTED = re.compile(r"\s{1,2}\(\d{1,2}\)(?=[.!?]?\s*$|[.!?]\s)|(?<=[.!?])\s{1,2}\(\d{1,2}\)(?=\s)", re.MULTILINE)
"""A number in brackets that ends a sentence, or follows its end."""
_CARET = re.compile(
    r"\s{0,2}\$\^\{?\d{1,2}(?:,\s?\d{1,2}){0,5}\}?\$|(?:(?<=\w{4})|(?<=[.,;)。！？])|\s{1,2})\^\[?\d{1,2}\]?\^?(?![\w^])"
)
_COMMAND = re.compile(
    r"\s{0,2}\\(?:cite|ref|footnote)[a-z]{0,8}\{[^{}\n]{1,80}\}|\s{0,2}(?:\ue200)?cite\W?turn\d\w{1,20}", re.IGNORECASE
)
_SUPERSCRIPT = re.compile(
    r"(?:(?<=[.,;:!?)\"'»”’。！？])|(?<=\w{4})|(?<!\d)\s(?!\s)|[\u207d])(?:[\u00b9\u00b2\u00b3\u2070-\u2079][\u00b9\u00b2\u00b3\u2070-\u2079,\u207b]{0,6}\u207e?|[\u2460-\u2473])"
)
_ELEMENT = re.compile(
    r"\s{0,2}<(sup|cite|ref|a|citation|source|sources|doc|document|chunk|context|fn|footnote)\b[^<>\n]{0,300}(?:/>|>([^<\n]{0,120})</\1>)",
    re.IGNORECASE,
)
_MARKS = (
    (_LENTICULAR, ""),
    (_NOTE, "["),
    (_CARET, "^"),
    (_BRACKETED, "[{("),
    (_SUPERSCRIPT, ""),
    (_COMMAND, ("\\", "turn")),
    (_COUNTED, "("),
    (_URL, ("://", "www.", "WWW.", "Www.")),
)
"""Forms of marks, each with the signs of which a text with one has at least one; empty where these are not ASCII."""
_LINK = re.compile(
    r"(\s{0,2}\(?\s?)(!?)\[(\[?[^\[\]\n]{0,200}\]?)\]\(([^()\s]{1,500})(?:\s\"[^\"\n]{0,100}\")?\)(\s?\)?)"
)
_GROUP = re.compile(
    r"\s{0,2}(?:\(((?:[^()\n]|\([^()\n]{0,20}\)){1,160})\)|\[([^\[\]\n]{1,160})\](?!\()|（([^（）\n]{1,160})）|〔([^〔〕\n]{1,160})〕)"
)
_AFTER_DASH = re.compile(
    r"[ \t]{1,2}[\u2014\u2013-]{1,2}[ \t]{0,2}([^\s;\u2014\u2013-][^\n;\u2014\u2013-]{0,79}?)(?=\.?[ \t]*$|(?<![ .][a-zA-Z])\.[ \t])",
    re.MULTILINE,
)
_EDITION_AT_END = re.compile(r"(?:,?\s(?:(?:19|20)\d\d[a-z]?|v(?:ersion)?\.?\s?\d[\d.]{0,8}))+$", re.IGNORECASE)
_MARK_OF_LINE = re.compile(r"\s{0,8}\d{1,3}:\s")
_AFTER_SENTENCE = re.compile(r"(?<=[.!?。])\s{0,3}(?=[^\W\d_*(])")
_MOST_LAST = 160
"""Characters of a source that is named behind the last sentence of a line."""
_LIST_LINE = re.compile(
    r"\s{0,8}(?:[-*+•▪◦‣]|\(?\d{1,3}[.):\]]|\[\^?\w{1,20}\]:?|[\u00b9\u00b2\u00b3\u2070-\u2079]{1,3})\s{0,4}"
)
_DEFINITION = re.compile(r"\s{0,8}\[\^[^\]\n]{1,40}\]:")
_MOST_WORDS, _MOST_WORDS_OF_SOURCE = 9, 14


def sources(text: str) -> Iterator[Part]:
    """Lists of sources, single lines that name one, and the texts of footnotes."""
    in_list, at = False, 0
    for line in text.splitlines(keepends=True):
        bare = line.strip()
        names_source = False
        if bare:
            head = head_of_source(bare)
            in_list = in_list and head is None and _is_listed_source(bare)
            if head is not None:
                rest = bare[head.end() :].strip(" *_:")
                in_list = names_source = len(rest.split()) <= _MOST_WORDS_OF_SOURCE or _is_source(rest)
            names_source = names_source or in_list or _DEFINITION.match(bare) is not None or _is_definition(bare)
        start = 0 if names_source else _source_at_end(line)
        if start is not None:
            yield Part(kind="sources", start=at + start, end=at + len(line.rstrip("\n")))
        at += len(line)


def _source_at_end(line: str) -> int | None:
    """Where a line's last words begin that name the source behind its sentences; None where there are none."""
    for end in _AFTER_SENTENCE.finditer(line, max(0, len(line) - _MOST_LAST)):
        rest = line[end.end() :].strip()
        head = head_of_source(rest)
        if head is not None and head[0].rstrip()[-1:] in {":", "："} and len(rest.split()) <= _MOST_WORDS_OF_SOURCE:
            return end.end()
    return None


def _is_listed_source(line: str) -> bool:
    """Whether a line below the head of a list of sources is one of them: an item, or a name and no sentence."""
    return _LIST_LINE.match(line) is not None or _FILE.search(line) is not None or _URL.search(line) is not None


def _is_definition(line: str) -> bool:
    """Whether a line is the text of a numbered note: the mark, and then only where it leads."""
    mark = _LIST_LINE.match(line)
    if _MARK_OF_LINE.match(line) and (_FILE.search(line) or _URL.search(line)):
        return len(line.split()) <= _MOST_WORDS
    return mark is not None and mark[0].strip()[:1] in "[¹²³" and _is_source(line[mark.end() :])


def _is_source(text: str) -> bool:
    """Whether a text that stands by itself names a source: a file, an address, a page, a word for one."""
    text = text.strip(" \t.*_")
    if not text or len(text.split()) > _MOST_WORDS_OF_SOURCE:
        return False
    if _FILE.search(text) or _URL.search(text) or head_of_source(text):
        return True
    if len(text.split()) > _MOST_WORDS:
        return False
    if _PAGE.search(text) or _ABOUT_SOURCE.fullmatch(text):
        return True
    named = _EDITION_AT_END.sub("", text)
    return "et al" in named or names_source(named, dated=named != text)


def citations(text: str, code: Sequence[tuple[int, int]]) -> Iterator[Part]:
    """Marks that lead to a source, wherever they stand but in code."""
    taken = marked(len(text), code)
    for start, end in _citation_places(text):
        if start < end and not any(taken[start:end]):
            taken[start:end] = b"\1" * (end - start)
            yield Part(kind="citation", start=start, end=end)


def _citation_places(text: str) -> Iterator[tuple[int, int]]:
    for link in found(_LINK, "[", text):
        yield from _places_of_link(link)
    for element in found(_ELEMENT, "<", text):
        content = (element[2] or "").strip()
        if not content or not content.strip("[](), 0123456789") or _is_source(content):
            yield element.span()
    for group in found(_GROUP, "([（〔", text):
        inside = next(filter(None, group.groups()))
        if _is_source(inside) or frames(inside):
            yield group.span()
    for tail in found(_AFTER_DASH, "-\u2013\u2014", text):
        if _is_source(tail[1]):
            yield tail.span()
    for mark, signs in _MARKS:
        yield from (match.span() for match in found(mark, signs, text))


def _places_of_link(link: re.Match[str]) -> Iterator[tuple[int, int]]:
    """All of a link that cites, or what is not the text of one that stands in a sentence."""
    opening, picture, words, _, closing = link.groups()
    bare = words.strip("[]^ ")
    cites = (
        bare.isdigit()
        or bare.lower() == "link"
        or ((head := head_of_source(bare)) is not None and head.end() == len(bare))
        or _URL.match(bare)
        or _is_source(bare)
    )
    if picture or cites or (opening.strip() and closing.strip()):
        yield link.span() if opening.strip() and closing.strip() else (link.start(2), link.end(4) + 1)
    else:
        yield link.start(3) - 1, link.start(3)
        yield link.end(3), link.end() - len(closing)
