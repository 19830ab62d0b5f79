from __future__ import annotations

import pytest

from ragspan.datasets.report.legible import excerpt, excerpts
from ragspan.telemetry.values import legible


@pytest.mark.parametrize("text", ["", "plain", "two\nlines\tand a tab", "Größe 数 🙂", "=1+cmd|' /C calc'!A0", "שלום"])
def test_ordinary_text_stays_as_it_is(text):
    assert legible(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x00b", "a␀b"),
        ("a\x1b[31mb", "a␛[31mb"),
        ("a\x7fb", "a␡b"),
        ("a\x85b", "a\ufffdb"),
        ("a\ud800b", "a\ufffdb"),
        ("user\u202egpj.exe", "user[U+202E]gpj.exe"),
        ("a\u2066b\u2069", "a[U+2066]b[U+2069]"),
        ("a\u2028b\r\nc\rd", "a\nb\nc\nd"),
    ],
)
def test_what_misleads_the_eye_or_breaks_an_encoder_is_made_visible(text, shown):
    assert legible(text) == shown
    assert legible(text).encode()


def test_a_short_text_is_shown_whole():
    shown = excerpt("a few words", at_once=100, room=1000)

    assert (shown.shown, shown.rest, shown.omitted) == ("a few words", "", 0)


def test_a_long_text_is_folded_between_two_words():
    text = "word " * 100

    shown = excerpt(text, at_once=52, room=10_000)

    assert shown.shown == "word " * 10
    assert shown.shown + shown.rest == text.strip()
    assert shown.folded == len(text) - 51
    assert shown.omitted == 0


def test_a_text_without_spaces_is_folded_all_the_same():
    assert excerpt("x" * 1000, at_once=50, room=10_000).shown == "x" * 50


def test_what_there_is_no_room_for_is_left_out_and_counted():
    shown = excerpt("x" * 1_000_000, at_once=50, room=400)

    assert len(shown.shown + shown.rest) == 400
    assert shown.omitted == 999_600


def test_short_texts_leave_their_room_to_the_long_ones():
    short, long, longer = excerpts(["a" * 10, "b" * 500, "c" * 900], at_once=50, room=1000)

    assert short.omitted == 0
    assert [len(text.shown + text.rest) for text in (long, longer)] == [495, 495]
