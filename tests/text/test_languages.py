"""How the text of a language is read, whatever its script."""

from __future__ import annotations

import pytest

from ragspan.text.keys import is_content, is_negation
from ragspan.text.languages import guess, language, languages_of


@pytest.mark.parametrize(
    ("code", "one", "other"),
    [
        ("de", "1.234,50", "1234,5"),
        ("de", "dreißig", "30"),
        ("de", "Verträge", "Vertrag"),
        ("fr", "1\u202f234,5", "1234,5"),
        ("hi", "१२", "12"),
        ("ar", "كِتَاب", "كتاب"),
        ("tr", "İstanbul'da", "istanbul"),
        ("el", "ΑΘΗΝΑ", "αθήνα"),
    ],
)
def test_two_spellings_of_one_thing_have_the_same_key(code, one, other):
    read = language(code)

    assert list(filter(is_content, read.keys(one))) == list(filter(is_content, read.keys(other)))


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("de", "Das Medikament darf nicht eingenommen werden"),
        ("fr", "Il ne faut pas le prendre"),
        ("ru", "Лекарство нельзя принимать"),
        ("zh", "不可以退货"),
    ],
)
def test_negations_are_known_and_are_no_content(code, sentence):
    denying = list(filter(is_negation, language(code).keys(sentence)))

    assert denying
    assert not any(map(is_content, denying))


@pytest.mark.parametrize(
    ("code", "text", "content"),
    [
        ("th", "ผู้ป่วย", ["ผู้ป่", "ป่ว", "วย"]),
        ("zh", "商品购买", ["商", "商品", "品", "品购", "购", "购买", "买"]),
        ("ja", "東京の", ["東", "東京", "京", "京の"]),
    ],
)
def test_where_words_are_not_apart_pairs_of_signs_are_compared(code, text, content):
    assert list(filter(is_content, language(code).keys(text))) == content


def test_an_unknown_code_is_read_without_words_of_its_own():
    assert [is_content(key) for key in language("xx").keys("Nyumba kubwa 12")] == [True] * 3


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("en", "The tower was built by a company and it opened in March."),
        ("de", "Der Turm wurde von einer Firma gebaut und im März eröffnet."),
        ("ru", "Башня была построена компанией и открыта в марте."),
        ("ar", "تم بناء البرج من قبل شركة وافتتح في مارس."),
        ("hi", "यह मीनार एक कंपनी ने बनाई थी।"),
        ("zh", "这座塔是由一家公司建造的。"),
        ("ko", "이 탑은 회사가 지었습니다."),
        ("und", "ეს კოშკი კომპანიამ ააშენა."),
    ],
)
def test_the_language_is_guessed_from_script_and_function_words(code, text):
    assert guess(text).code == code


@pytest.mark.parametrize(
    "text",
    [
        "```\nfor x in the_list: if x is not None and x or y: return x\n```\nDie Funktion gibt das erste Element der Liste zurück.",
        "Das Apple iPhone 15 Pro Max ist mit dem MacBook Air und der Apple Watch Ultra kompatibel, nicht mit dem Pixel.",
    ],
)
def test_code_addresses_tables_and_product_names_do_not_break_the_guess(text):
    assert guess(text).code == "de"


def test_a_short_response_is_read_in_the_language_of_its_contexts():
    found = languages_of("30 Tage", ["Der Artikel kann innerhalb von 30 Tagen nach dem Kauf zurückgegeben werden."])

    assert (found.response.code, found.are_comparable) == ("de", True)


@pytest.mark.parametrize("text", ["Pets are allowed.", "Two single rooms are $160."])
def test_a_short_text_whose_only_function_words_other_languages_have_too_is_english(text):
    assert languages_of(text, ["A single room costs $80, a double room $110."], "Price?").response.code == "en"
