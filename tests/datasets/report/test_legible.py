from __future__ import annotations

import pytest

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
