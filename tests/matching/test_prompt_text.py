"""Where texts are in a prompt."""

import html
import json
import textwrap

import pytest

from ragspan.matching import PromptText

BETA = "Beta settles card payments after midnight; the run takes about four minutes on weekdays."
ALPHA = 'Alpha stores "customer profiles" in Postgres\nand keeps them for <seven> years & a day.'


def found(prompt, *texts):
    return [None if match is None else ("whole" if match.whole else "part") for match in PromptText(prompt).find(texts)]


@pytest.mark.parametrize(
    "write",
    [
        str,
        json.dumps,
        repr,
        html.escape,
        lambda text: json.dumps([{"page_content": text}], indent=2),
        lambda text: textwrap.indent(text, "    "),
        lambda text: textwrap.fill(text, 30),
        lambda text: "\n".join(f"> {line}" for line in textwrap.wrap(text, 60)),
        lambda text: text.replace("\n", "\r\n\r\n"),
    ],
    ids=["plain", "json", "repr", "xml", "json list", "indented", "wrapped", "quoted", "other line ends"],
)
def test_a_text_is_found_whole_however_a_formatter_wrote_it(write):
    assert found(f"Use this:\n{write(ALPHA)}\nQuestion: who?", ALPHA, BETA) == ["whole", None]


def test_matches_can_be_put_in_prompt_order():
    first, second = PromptText(f"{BETA}\n{ALPHA}").find([ALPHA, BETA])

    assert second.start < first.start


@pytest.mark.parametrize(
    "excerpt",
    [BETA[:40] + "...", BETA[20:], "… " + BETA[14:70] + " …"],
    ids=["beginning", "end", "middle"],
)
def test_an_excerpt_is_found_as_a_part(excerpt):
    assert found(f"[1] {excerpt}\n[2] something else", BETA) == ["part"]


def test_a_few_common_words_are_no_excerpt():
    assert found("Say which card payments are meant, and when Beta is open.", BETA) == [None]


def test_a_text_inside_a_longer_one_does_not_count_by_that():
    assert found(BETA, BETA, "Beta settles card payments") == ["whole", None]
    assert found(f"{BETA}\nBeta settles card payments", BETA, "Beta settles card payments") == ["whole", "whole"]


def test_a_heading_that_texts_share_proves_nothing():
    heading = "Handbook of the payments department, third edition: "

    assert found(f"{heading}{BETA}", heading + BETA, heading + ALPHA) == ["whole", None]


def test_a_short_text_must_stand_by_itself():
    assert found("Notable places: none", "No", "place") == [None, None]
    assert found("Answer: No.", "No") == ["whole"]


def test_equal_texts_share_their_place_and_blank_ones_have_none():
    prompt = PromptText(BETA)

    matches = prompt.find([BETA, BETA, "  "])

    assert matches[0] == matches[1]
    assert matches[2] is None


OVERLAP = "Card payments that arrive after the cut-off time of six are settled on the following business day. "
FIRST = "Beta closes the ledgers of all branches at midnight, and not before the last of them has reported. " + OVERLAP
SECOND = (
    OVERLAP + "Refunds take a different route: they are collected by hand each Friday and sent to the banks on Monday."
)


@pytest.mark.parametrize("copies", [1, 2, 5])
@pytest.mark.parametrize("write", [str, json.dumps, lambda text: text[-150:]], ids=["plain", "json", "its end"])
def test_a_neighbour_that_was_dropped_is_not_found_in_the_copies_of_a_text(copies, write):
    prompt = "\n\n".join([write(FIRST)] * copies)

    assert found(prompt, FIRST, SECOND)[1] is None


def test_a_short_text_that_was_dropped_is_not_found_in_the_copies_of_a_longer_one():
    assert found(f"{BETA}\n\n{BETA}", "Beta settles card payments", BETA) == [None, "whole"]


def test_two_texts_that_were_cut_to_the_same_heading_have_a_place_each():
    heading = "Handbook of the payments department, third edition, for authorised readers of the branch offices only: "

    assert found(f"[1] {heading}...\n[2] {heading}...", heading + BETA, heading + ALPHA) == ["part", "part"]


def test_the_users_own_words_hold_no_texts():
    prompt = PromptText(f"Answer briefly.\nIs it true that {BETA}?", apart=f"Is it true that {BETA}?")

    assert prompt.find([BETA]) == [None]


def test_texts_that_differ_in_punctuation_only_are_told_apart():
    assert found("Use C++.", "Use C#.", "Use C++.") == [None, "whole"]


@pytest.mark.parametrize("order", [1, -1], ids=["in order", "reversed"])
def test_the_texts_of_a_prompt_may_come_in_any_order(order):
    texts = [f"Part {number} belongs to assembly {number * 7}." for number in range(200)]

    assert found("\n".join(texts[::order]), *texts) == ["whole"] * 200
    assert found("\n".join(texts[::2][::order]), *texts) == ["whole", None] * 100


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
