"""How the text of a language is read, whatever its script."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ragspan.text.keys import is_content, is_negation
from ragspan.text.languages import guess, language, languages_of

TEXTS = json.loads(Path(__file__).with_name("languages.json").read_text("utf-8"))


@pytest.mark.parametrize(("code", "one", "other"), TEXTS["two spellings"])
def test_two_spellings_of_one_thing_have_the_same_key(code, one, other):
    read = language(code)

    assert list(filter(is_content, read.keys(one))) == list(filter(is_content, read.keys(other)))


@pytest.mark.parametrize(("code", "sentence"), TEXTS["negations"])
def test_negations_are_known_and_are_no_content(code, sentence):
    denying = list(filter(is_negation, language(code).keys(sentence)))

    assert denying
    assert not any(map(is_content, denying))


@pytest.mark.parametrize(("code", "text", "content"), TEXTS["words that are not apart"])
def test_where_words_are_not_apart_pairs_of_signs_are_compared(code, text, content):
    assert list(filter(is_content, language(code).keys(text))) == content


def test_an_unknown_code_is_read_without_words_of_its_own():
    *words, number = language("xx").keys("Nyumba kubwa 1.250")
    assert ([is_content(key) for key in words], number) == ([True] * 2, "1.250")


@pytest.mark.parametrize(("code", "text"), TEXTS["guesses"])
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


@pytest.mark.parametrize(("response", "context", "are_comparable"), TEXTS["apart or not"])
def test_words_and_letters_of_another_language_set_a_response_apart(response, context, are_comparable):
    assert languages_of(response, [context]).are_comparable is are_comparable


@pytest.mark.parametrize("text", ["Pets are allowed.", "Two single rooms are $160."])
def test_a_short_text_whose_only_function_words_other_languages_have_too_is_english(text):
    assert languages_of(text, ["A single room costs $80, a double room $110."], "Price?").response.code == "en"
