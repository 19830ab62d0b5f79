"""Documents are recognised in whatever form a program writes them into a prompt."""

from __future__ import annotations

import html
import json
import re
import textwrap
import unicodedata
from xml.sax.saxutils import escape

import pytest
from rag_programs import ANSWER, FILTER, PUMP, QUESTION, join_texts, rag_chain, retriever, texts_of

TRICKY = [
    'The "pump" runs at\n\t3 < 4 bar & never at 5;\nso says O\'Neill in Zürich.',
    "A backslash \\ and a tab\there, then 50 % of {nothing}.",
    "The motor draws 400 W — no more — at full load.",
]

FORMATTERS = {
    "plain": join_texts,
    "numbered": lambda found: "\n".join(f"[{i}] {d.page_content}" for i, d in enumerate(found, 1)),
    "xml": lambda found: "".join(f'<doc id="{d.id}">\n{d.page_content}\n</doc>' for d in found),
    "escaped xml": lambda found: "".join(f"<doc>{escape(d.page_content)}</doc>" for d in found),
    "escaped html": lambda found: "".join(f"<p>{html.escape(d.page_content)}</p>" for d in found),
    "markdown": lambda found: "\n".join(f"## Page {d.metadata['page']}\n\n{d.page_content}\n" for d in found),
    "bullets": lambda found: "\n".join(f"* {d.page_content}" for d in found),
    "indented": lambda found: "\n".join(textwrap.indent(d.page_content, "        ") for d in found),
    "quoted": lambda found: "\n>\n".join(textwrap.indent(d.page_content, "> ") for d in found),
    "wrapped": lambda found: "\n\n".join(textwrap.fill(d.page_content, 24) for d in found),
    "one line": lambda found: " | ".join(" ".join(d.page_content.split()) for d in found),
    "printed": str,
    "printed texts": lambda found: str(texts_of(found)),
    "json": lambda found: json.dumps(texts_of(found)),
    "json with letters": lambda found: json.dumps(texts_of(found), ensure_ascii=False, indent=2),
    "json objects": lambda found: json.dumps([{"text": d.page_content, "page": d.metadata["page"]} for d in found]),
    "json of models": lambda found: json.dumps([d.model_dump() for d in found]),
    "json in json": lambda found: json.dumps({"result": json.dumps(texts_of(found))}),
    "windows lines": lambda found: "\r\n\r\n".join(d.page_content.replace("\n", "\r\n") for d in found),
    "code fence": lambda found: "\n".join(f"```\n{d.page_content}\n```" for d in found),
    "table": lambda found: "\n".join(f"| {d.id} | {' '.join(d.page_content.split())} |" for d in found),
    "quotation marks": lambda found: "\n".join(f"“{d.page_content}”" for d in found),
    "numbered lines": lambda found: "\n".join(
        f"{number}: {line}" for number, line in enumerate(join_texts(found).splitlines())
    ),
    "numbered texts": lambda found: "\n".join(str(pair) for pair in enumerate(texts_of(found))),
    "yaml": lambda found: "\n".join(f"- text: {json.dumps(d.page_content)}" for d in found),
    "csv": lambda found: "\n".join('"' + d.page_content.replace('"', '""') + '"' for d in found),
    "cdata": lambda found: "".join(f"<doc><![CDATA[{d.page_content}]]></doc>" for d in found),
    "html lines": lambda found: "<hr>".join(d.page_content.replace("\n", "<br>") for d in found),
    "lines as in source code": lambda found: "\n".join(d.page_content.replace("\n", "\\n") for d in found),
    "some html entities": lambda found: "\n".join(
        d.page_content.replace("&", "&amp;").replace("<", "&lt;").replace("'", "&#39;") for d in found
    ),
    "json for a web page": lambda found: (
        json.dumps(texts_of(found)).replace("<", "\\u003c").replace("&", "\\u0026").replace("'", "\\u0027")
    ),
    "decomposed letters": lambda found: unicodedata.normalize("NFD", join_texts(found)),
    "without full stops": lambda found: "\n".join(d.page_content.rstrip(".") for d in found),
    "bold words": lambda found: join_texts(found).replace("motor", "**motor**").replace("pump", "**pump**"),
}


def asked(captured, texts, formatter):
    rag_chain(retriever(*texts), formatter=formatter).invoke(QUESTION, captured.config)
    record = captured.record()
    assert (record.question, record.response, record.status) == (QUESTION, ANSWER, "complete")
    return record.contexts


def texts_asked(captured, texts, formatter):
    return [context.text for context in asked(captured, texts, formatter)]


@pytest.mark.parametrize("formatter", FORMATTERS.values(), ids=FORMATTERS)
def test_texts_with_quotes_and_line_breaks(captured, formatter):
    assert texts_asked(captured, TRICKY, formatter) == TRICKY


@pytest.mark.parametrize("formatter", FORMATTERS.values(), ids=FORMATTERS)
def test_the_last_document_is_left_out(captured, formatter):
    assert texts_asked(captured, TRICKY, lambda found: formatter(found[:2])) == TRICKY[:2]


CHINESE = ["水泵自购买之日起保修三年。", "滤网每月用手冲洗一次，然后在阴凉处晾干。", "电机满载时功率为四百瓦。"]
JAPANESE = ["ポンプの保証期間は購入日から三年間です。", "フィルターは月に一度手洗いしてください。"]


@pytest.mark.parametrize("texts", [CHINESE, JAPANESE], ids=["chinese", "japanese"])
@pytest.mark.parametrize("name", ["plain", "numbered", "xml", "json", "printed", "json in json"])
def test_texts_without_spaces_between_words(captured, texts, name):
    assert texts_asked(captured, texts, FORMATTERS[name]) == texts


def test_the_beginning_of_a_chinese_text(captured):
    long = "".join(CHINESE) * 4

    assert texts_asked(captured, [long, "别的。"], lambda found: found[0].page_content[:40]) == [long]


# Excerpts


def chapters(*topics):
    """Long documents, each of words of its own."""
    return [
        f"Chapter on {topic}. "
        + " ".join(
            f"Keep {topic}{i} with {topic}{i + 50}, or let {topic}{i + 100} dry near {topic}{i + 150}."
            for i in range(30)
        )
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
def test_an_excerpt_stands_for_the_whole_document(captured, excerpt):
    texts = chapters("alpha", "beta", "gamma", "delta")
    contexts = asked(captured, texts, lambda found: "\n\n".join(excerpt(d.page_content) for d in found[:2]))

    assert [context.text for context in contexts] == texts[:2]
    assert [context.truncated for context in contexts] == [True, True]


def test_one_whole_document_and_one_excerpt(captured):
    texts = chapters("alpha", "beta")
    contexts = asked(captured, texts, lambda found: found[0].page_content + "\n\n" + found[1].page_content[:90])

    assert [(context.text, context.truncated) for context in contexts] == [(texts[0], False), (texts[1], True)]


# Texts that are alike


@pytest.mark.parametrize("places", [[0, 2], [0, 1, 2, 3]])
def test_chunks_that_overlap(captured, places):
    words = [f"word{i}" for i in range(200)]
    texts = [" ".join(words[start : start + 60]) for start in range(0, 140, 40)]
    shown = [texts[place] for place in places]

    assert texts_asked(captured, texts, lambda found: join_texts([found[place] for place in places])) == shown


@pytest.mark.parametrize(
    "texts",
    [
        [f"The warranty of model {model} runs for three years from the date of purchase." for model in "ABC"],
        [f"The spare part that belongs to the blue pump on page four is number {n}." for n in (11, 12, 13)],
    ],
    ids=["a word", "the last word"],
)
def test_texts_that_differ_in_one_word(captured, texts):
    assert texts_asked(captured, texts, lambda found: join_texts(found[1:])) == texts[1:]
    assert texts_asked(captured, texts, lambda found: join_texts([found[2]])) == [texts[2]]


@pytest.mark.parametrize(
    "texts",
    [["Yes.", "No."], ["42", "7"], ["A", "B"], ["EUR 12.50", "EUR 99.00"], ["Lyon", "Paris"]],
    ids=["words", "numbers", "letters", "prices", "names"],
)
def test_very_short_documents(captured, texts):
    assert texts_asked(captured, texts, FORMATTERS["numbered"]) == texts


def test_a_passage_that_begins_with_the_question(captured):
    texts = [f"Q: {QUESTION}\nA: Three years.", PUMP]

    assert texts_asked(captured, texts, join_texts) == texts


def test_a_last_passage_that_is_cut_off(captured):
    contexts = asked(captured, [PUMP, FILTER], lambda found: join_texts(found)[: len(PUMP) + 40])

    assert [(context.text, context.truncated) for context in contexts] == [(PUMP, False), (FILTER, True)]
