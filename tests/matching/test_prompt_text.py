"""Where texts are in a prompt, in whatever form a program writes them."""

import html
import json
import re
import textwrap
import unicodedata
from pathlib import Path
from xml.sax.saxutils import escape

import pytest
from whole_records import WholeRecords

from ragspan.matching import PromptTexts, has_words

WHOLE = WholeRecords(Path(__file__).with_name("whole_excerpts.json"))
BETA = "Beta settles card payments after midnight; the run takes about four minutes on weekdays."
ALPHA = 'Alpha stores "customer profiles" in Postgres\nand keeps them for <seven> years & a day.'
TRICKY = [
    'The "pump" runs at\n\t3 < 4 bar & never at 5;\nso says O\'Neill in Zürich.',
    "A backslash \\ and a tab\there, then 50 % of {nothing}.",
    "The motor draws 400 W — no more — at full load.",
]
CHINESE = ["水泵自购买之日起保修三年。", "滤网每月用手冲洗一次，然后在阴凉处晾干。", "电机满载时功率为四百瓦。"]
JAPANESE = ["ポンプの保証期間は購入日から三年間です。", "フィルターは月に一度手洗いしてください。"]


def each(write, between="\n"):
    return lambda texts: between.join(map(write, texts))


FORMATTERS = {
    "plain": each(str, "\n\n"),
    "numbered": lambda texts: "\n".join(f"[{number}] {text}" for number, text in enumerate(texts, 1)),
    "xml": each(lambda text: f'<doc id="1">\n{text}\n</doc>', ""),
    "escaped xml": each(lambda text: f"<doc>{escape(text)}</doc>", ""),
    "escaped html": each(lambda text: f"<p>{html.escape(text)}</p>", ""),
    "markdown": each(lambda text: f"## Page 3\n\n{text}\n"),
    "bullets": each(lambda text: f"* {text}"),
    "indented": each(lambda text: textwrap.indent(text, "        ")),
    "quoted": each(lambda text: textwrap.indent(text, "> "), "\n>\n"),
    "wrapped": each(lambda text: textwrap.fill(text, 24), "\n\n"),
    "one line": each(lambda text: " ".join(text.split()), " | "),
    "printed": lambda texts: str(texts),
    "json": json.dumps,
    "json with letters": lambda texts: json.dumps(texts, ensure_ascii=False, indent=2),
    "json objects": lambda texts: json.dumps([{"text": text, "page": 3} for text in texts]),
    "json in json": lambda texts: json.dumps({"result": json.dumps(texts)}),
    "windows lines": each(lambda text: text.replace("\n", "\r\n"), "\r\n\r\n"),
    "code fence": each(lambda text: f"```\n{text}\n```"),
    "table": each(lambda text: f"| 3 | {' '.join(text.split())} |"),
    "quotation marks": each(lambda text: f"“{text}”"),
    "numbered lines": lambda texts: "\n".join(f"{at}: {line}" for at, line in enumerate("\n".join(texts).splitlines())),
    "numbered texts": lambda texts: "\n".join(map(str, enumerate(texts))),
    "yaml": each(lambda text: f"- text: {json.dumps(text)}"),
    "csv": each(lambda text: '"' + text.replace('"', '""') + '"'),
    "cdata": each(lambda text: f"<doc><![CDATA[{text}]]></doc>", ""),
    "html lines": each(lambda text: text.replace("\n", "<br>"), "<hr>"),
    "lines as in source code": each(lambda text: text.replace("\n", "\\n")),
    "some html entities": each(
        lambda text: text.replace("&", "&amp;").replace("<", "&lt;").replace("'", "&#39;"),
    ),
    "json for a web page": lambda texts: (
        json.dumps(texts).replace("<", "\\u003c").replace("&", "\\u0026").replace("'", "\\u0027")
    ),
    "decomposed letters": each(lambda text: unicodedata.normalize("NFD", text)),
    "without full stops": each(lambda text: text.rstrip(".")),
    "bold words": each(lambda text: text.replace("motor", "**motor**").replace("pump", "**pump**")),
}


def found(prompt, *texts):
    return [
        ("whole" if matches[0].whole else "part") if matches else None for matches in PromptTexts([prompt]).find(texts)
    ]


@pytest.mark.parametrize("name", FORMATTERS)
def test_texts_are_found_however_a_formatter_wrote_them_and_those_left_out_are_not(name):
    write = FORMATTERS[name]

    assert found(f"Use this:\n{write(TRICKY)}\nQuestion: who?", *TRICKY) == ["whole", "whole", "whole"]
    assert found(f"Use this:\n{write(TRICKY[:2])}\nQuestion: who?", *TRICKY) == ["whole", "whole", None]


@pytest.mark.parametrize("texts", [CHINESE, JAPANESE], ids=["chinese", "japanese"])
@pytest.mark.parametrize("name", ["plain", "numbered", "xml", "json", "printed", "json in json"])
def test_texts_without_spaces_between_words(texts, name):
    assert found(FORMATTERS[name](texts), *texts) == ["whole"] * len(texts)


@pytest.mark.parametrize(
    ("prompt", "text"),
    [
        ("Ein Cafe\u0301 in Köln hat bis Mitternacht geöffnet.", "Ein Café in Köln hat bis Mitternacht geöffnet."),
        ("\u304b\u3099\u3063\u3053\u3046は\u4e5d月に始まります。", "がっこうは九月に始まります。"),
        ("保修期为三年, 从购买之日起计算。", "保修期为三年，从购买之日起计算。"),
        ("soft\u00adware that is free", "software that is free"),
        ("Sam &amp;amp; Max &eacute;t&eacute; &#233;t&#xe9;", "Sam & Max été été"),
        (json.dumps(json.dumps("Größe 𠀋 \n\t 'x'")), "Größe 𠀋 \n\t 'x'"),
        (ascii("Größe 𠀋 naïve"), "Größe 𠀋 naïve"),
        ("path C:\\\\temp\\\\new is used", "path C:\\temp\\new is used"),
    ],
    ids=["accents", "kana", "chinese", "soft hyphen", "entities", "json in json", "python's ascii", "a path"],
)
def test_a_text_is_found_in_another_spelling(prompt, text):
    assert found(f"Use this: {prompt} Be brief.", text, BETA) == ["whole", None]


def test_few_words_before_and_after_what_a_program_writes_between_lines_belong_to_a_text():
    code = "rows = load()\ndef total_of_the_paid_rows_in_euros(values):\n    print(total)"
    numbered = "\n".join(f"{at}: {line}" for at, line in enumerate(code.splitlines(), 31))

    assert found(f"Use this:\n{numbered}\nQuestion: who?", code) == ["whole"]


# Excerpts


def chapters(*topics):
    """Long texts, each of words of its own."""
    lines = "Keep {0}{1} with {0}{2}, or let {0}{3} dry near {0}{4}."
    return [
        f"Chapter on {topic}. " + " ".join(lines.format(topic, at, at + 50, at + 100, at + 150) for at in range(30))
        for topic in topics
    ]


EXCERPTS = {
    "head": lambda text: text[:60] + "...",
    "window from the middle": lambda text: "..." + text[400:700] + "...",
    "tail": lambda text: text[-200:],
    "two windows": lambda text: f"{text[200:380]} [...] {text[900:1080]}",
    "words": lambda text: " ".join(text.split()[:40]),
    "two sentences": lambda text: " ".join(re.findall(r"[^.]+\.", text)[7:9]),
    "ellipsis in the middle": lambda text: text[:100] + " … " + text[-100:],
    "wrapped head": lambda text: textwrap.fill(textwrap.shorten(text, 200), 40),
    "lines of a page": lambda text: "\n".join(textwrap.wrap(text, 80)[3:6]),
}


@pytest.mark.parametrize("excerpt", EXCERPTS.values(), ids=EXCERPTS)
def test_an_excerpt_stands_for_the_whole_text(excerpt):
    texts = chapters("alpha", "beta", "gamma", "delta")

    assert found("\n\n".join(map(excerpt, texts[:2])), *texts) == ["part", "part", None, None]


# Texts that are alike


OVERLAP = "Card payments that arrive after the cut-off time of six are settled on the following business day. "
FIRST = "Beta closes the ledgers of all branches at midnight, and not before the last of them has reported. " + OVERLAP
SECOND = (
    OVERLAP + "Refunds take a different route: they are collected by hand each Friday and sent to the banks on Monday."
)


@pytest.mark.parametrize("copies", [1, 2, 5])
@pytest.mark.parametrize("write", [str, json.dumps], ids=["plain", "json"])
def test_a_neighbour_that_was_dropped_is_not_found_in_the_copies_of_a_text(copies, write):
    prompt = "\n\n".join([write(FIRST)] * copies)

    assert found(prompt, FIRST, SECOND)[1] is None


@pytest.mark.parametrize(
    "texts",
    [
        [f"The warranty of model {model} runs for three years from the date of purchase." for model in "ABC"],
        [f"The spare part that belongs to the blue pump on page four is number {number}." for number in (11, 12, 13)],
        ["Use C#.", "Use C.", "Use C++."],
    ],
    ids=["a word", "the last word", "punctuation"],
)
def test_texts_that_differ_in_little_are_told_apart(texts):
    assert found(texts[2], *texts) == [None, None, "whole"]
    assert found("\n\n".join(texts[1:]), *texts) == [None, "whole", "whole"]


@pytest.mark.parametrize("order", [1, -1], ids=["in order", "reversed"])
def test_the_texts_of_a_prompt_may_come_in_any_order(order):
    texts = [f"Part {number} belongs to assembly {number * 7}." for number in range(200)]

    assert found("\n".join(texts[::order]), *texts) == ["whole"] * 200
    assert found("\n".join(texts[::2][::order]), *texts) == ["whole", None] * 100


def test_how_many_words_a_text_has_is_counted_by_spaces_and_in_other_scripts_by_letters():
    texts = ("a", "a b", "a-b", "é b", "é-b", "日本", "")
    assert [has_words(text, 2) for text in texts] == [False, True, False, True, True, True, False]


# Short texts, equal texts, the user's words


@pytest.mark.parametrize(
    "texts", [["Yes.", "No."], ["42", "7"], ["A", "B"], ["EUR 12.50", "EUR 99.00"], ["Lyon", "Paris"]], ids=" ".join
)
def test_a_short_text_must_stand_by_itself(texts):
    assert found(f"[1] {texts[0]}\n[2] {texts[1]}", *texts) == ["whole", "whole"]
    assert found("Notable places: none, CABLE, 427, 142, parish, lyonnaise", *texts) == [None, None]


def test_a_text_that_begins_with_the_users_words():
    question = "How long is the warranty on the pump?"
    texts = [f"Q: {question}\nA: Three years.", ALPHA]
    prompt = PromptTexts(["\n\n".join([*texts, question])], apart=question)

    assert [[match.whole for match in own] for own in prompt.find(texts)] == [[True], [True]]


# What the prompt has of a text, and what it has beside


def shown(prompt, *texts):
    """The matches of texts, and what is left of a prompt where it has more than a mark."""
    prompts = PromptTexts([prompt])
    matches = [[list(match)[1:] for match in own] for own in prompts.find(texts)]
    left = [prompt[slice(*free.span())].strip('\n\\"[.') for free in re.finditer(rb"\x00+", prompts.marks[0])]
    return [matches, [text for text in left if text]]


CONTACT = "The contact of the boiler room is anna@example.com, and the pressure is two bar when it is cold."


MASKED = CONTACT.replace("anna@example.com", "[E-MAIL]")
HEADING = "Handbook of the payments department, third edition, for authorised readers of the branch offices only: "
CUSTODIAN = "Anna Smith runs the boiler room of the whole house since 1999 for the board"
REPORTS = f"{BETA} Its reports go to the head office by courier, and copies of them to the archive in Turin."
LONG_WORDS = "Kartenzahlungen werden spätestens nach Transaktionsabschluss gutgeschrieben."
PARAGRAPHS = " ".join(f"Paragraph {at} speaks of item {at * 7} in the house." for at in range(60))
POLICIES = [
    "\n".join(
        [f"Leave in {place}", *(f"After {at} years one has {20 + at * more % 9} days of leave." for at in range(9))]
    )
    for more, place in enumerate(("Graz", "Porto", "Lille"), 1)
]
KIT = "The kit of the pump holds nine parts, two of which are of brass, "
CASES = {
    "the beginning of a short text": (f"[1] {BETA[:40]}...\n[2] something else", BETA),
    "the end of a short text": (f"[1] {BETA[20:]}\n[2] something else", BETA),
    "the middle of a short text": (f"[1] … {BETA[14:70]} …\n[2] something else", BETA),
    "a few common words": ("Say which card payments are meant, and when Beta is open.", BETA),
    "a text inside a longer one": (BETA, BETA, BETA[:26]),
    "a text inside a longer one, and by itself": (f"{BETA}\n{BETA[:26]}", BETA, BETA[:26]),
    "a text inside a longer one that comes twice": (f"{BETA}\n\n{BETA}", BETA[:26], BETA),
    "a text of one letter before one in capitals": (f"A {BETA.upper()} B", "A", BETA, "B"),
    "a heading that texts share": (f"{HEADING}{BETA}", HEADING + BETA, HEADING + ALPHA),
    "two texts that were cut to the same heading": (
        f"[1] {HEADING}...\n[2] {HEADING}...",
        *(HEADING + BETA, HEADING + ALPHA),
    ),
    "texts that are much the same, cut": (f"{POLICIES[0]}\n\n{POLICIES[1][:200]}\n\nHow many?", *POLICIES),
    "a piece that two texts share": (f"{KIT}...\nHow many?", f"{KIT}all of them new.", f"{KIT}and no screws at all."),
    **{
        f"what is masked, {name}": (f"Use:\n{write(MASKED)}\nAnswer!", CONTACT)
        for name, write in (("plain", str), ("json", json.dumps), ("html", html.escape), ("python", ascii))
    },
    "masks at both edges": (
        f"Source: a.pdf\n{CUSTODIAN.replace('Anna Smith', '[NAME]').replace('1999', '****')}\n",
        CUSTODIAN,
    ),
    "a mask within": (f"Use: Write to {MASKED} Be brief.", f"Write to {CONTACT}"),
    "a text that is cut where the prompt cuts it": (f"{BETA}\n\nWhere do its reports go?", REPORTS),
    "a few long words": (f"{LONG_WORDS[:35]}...\nWhen?", LONG_WORDS),
    "a long word of a text": ("Kartenzahlungen werden sofort gutgeschrieben.", LONG_WORDS),
    "most words of a short text": (
        "Dr. *** lives in Graz since the year 2019.",
        "Dr. Maria lives in Graz since the year 2019.",
    ),
    "words between the pieces of a text": (
        f"{PARAGRAPHS[:300]} [...] {PARAGRAPHS[900:1200]}\nSource: b.pdf",
        PARAGRAPHS,
    ),
    "another text between the pieces of one": (
        f"{PARAGRAPHS[:300]}\n{CONTACT}\n{PARAGRAPHS[900:1200]}",
        *(PARAGRAPHS, CONTACT),
    ),
    "the copies of a text": (f"{BETA}\nPrice: 3\n{BETA}", BETA),
    "the copies of a text in JSON": (f"{json.dumps(ALPHA)}\nPrice: 3\n{json.dumps(ALPHA)}", ALPHA),
    "a cut text with quotation marks in JSON": (json.dumps(REPORTS[:90].replace("midnight", '"midnight"')), REPORTS),
    "a cut text with a line break in JSON": (json.dumps({"page": f"{ALPHA[:72]}\n..."}), ALPHA),
    "escapes that stand for no character": (
        r"odd \U00110000 &#1114112; &#xd800; \ud800 &nobody; marks are kept",
        r"ODD \U00110000 &#1114112; &#xd800; \ud800 &nobody; marks are kept",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_a_prompt_has_of_texts_and_what_it_has_beside(name):
    known, seen = WHOLE.told(name, shown(*CASES[name]))

    assert seen == known


def test_places_are_characters_of_the_prompt_through_all_escapes():
    prompt = "Für alle: " + json.dumps([json.dumps("Größe 𠀋"), "The pump runs at 3 < 4 bar & never at 5."])

    ((match,),) = PromptTexts([prompt]).find(["THE PUMP runs at 3 < 4 bar & never at 5."])

    assert prompt[slice(match.start, match.end)] == "The pump runs at 3 < 4 bar & never at 5"
