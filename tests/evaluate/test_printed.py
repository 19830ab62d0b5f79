"""Lists of contexts that a program printed into a cell."""

from __future__ import annotations

import collections
import json

import numpy as np
import pandas as pd
import pytest
from langchain_core.documents import Document

from ragspan.evaluate.cells import CellError, contexts_of

TEXTS = [
    "Our office's in Berlin; ask for [Anna] (room 3).",
    'The "warranty" lasts 24 months, from the date of purchase, and is longer than a line.',
]
OBJECTS = np.array(TEXTS, dtype=object)
MANY = np.array([f"text {number}" for number in range(2000)], dtype=object)


def texts_of(cell):
    return [context.text for context in contexts_of(cell)]


@pytest.mark.parametrize(
    "cell",
    [
        *(str(OBJECTS), repr(OBJECTS), str(np.array(TEXTS)), repr(np.array(TEXTS)), repr(list(np.array(TEXTS)))),
        *(str(TEXTS), str(tuple(TEXTS)), str(collections.deque(TEXTS)), str(dict(enumerate(TEXTS)).values())),
        *(str([*TEXTS, None]), str(np.array([np.nan, *TEXTS], dtype=object))),
        *(
            str([Document(text, metadata={"source": "a.pdf"}) for text in TEXTS]),
            str([{"text": text} for text in TEXTS]),
        ),
        *(
            json.dumps(TEXTS, indent=1),
            "[" + ",".join(map(repr, TEXTS)) + "]",
            " ( " + " , ".join(map(repr, TEXTS)) + ")",
        ),
        "{" + ",".join(map(json.dumps, TEXTS)) + "}",
    ],
)
def test_a_printed_list_is_the_list_that_it_was(cell):
    assert texts_of(cell) == TEXTS


@pytest.mark.parametrize("dtype", ["string", "object"])
def test_an_array_of_pandas_is_read_with_what_is_missing_in_it(dtype):
    assert texts_of(str(pd.array(["one", None, "two"], dtype=dtype))) == ["one", "two"]


@pytest.mark.parametrize("cell", ["[]", "array([], dtype=object)", "()", "[None]", "[nan]"])
def test_a_printed_list_of_nothing_has_no_contexts(cell):
    assert contexts_of(cell) == ()


@pytest.mark.parametrize("cell", ["['only one']", repr(np.array(["only one"])), repr(Document("only one"))])
def test_a_single_context_is_read_as_well(cell):
    assert texts_of(cell) == ["only one"]


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        *[(cell, "was cut when it was printed") for cell in (str(MANY), repr(MANY), "['a', ..., 'z']")],
        *[
            (cell, "cannot be read: write JSON")
            for cell in (
                *(str(pd.Series(TEXTS)), str(pd.Series(MANY, name="contexts")), repr(pd.Categorical(TEXTS))),
                str(pd.array(TEXTS * 2, dtype="string")),  # which cuts long texts
                *(
                    str(Document(TEXTS[0])),
                    "[<app.Opaque object at 0x7fa7bb117d50>]",
                    "<map object at 0x7fa7ba2d1240>",
                    "['a', Timestamp('2020-01-01')]",
                ),
                *(repr(TEXTS)[:70], json.dumps(TEXTS)[:70], "['cut in its first text"),
                'shape: (2,)\nSeries: \'\' [str]\n[\n\t"a"\n\t"b"\n]',
            )
        ],
        *[(cell, "a list in place 1") for cell in ("[['a'], ['b']]", str([np.array(["a"], dtype=object)]))],
    ],
)
def test_a_printed_list_that_lost_something_is_refused_in_words_that_quote_nothing(cell, message):
    with pytest.raises(CellError, match=message) as refused:
        contexts_of(cell)
    assert not any(text[:10] in str(refused.value) for text in TEXTS)


@pytest.mark.parametrize(
    "text",
    [
        *("[1] See the terms [2]", "[Source: handbook] It rains. [end]", '["Title"](https://example.org) says so'),
        *('("Quoted") is the word', "(2019) It rained", "{'a': 1} is a dictionary", "[x for x in 'ab']"),
        *('["Fire" drill]', "set(a, b)", "array of texts", "<b>bold</b> ['a']", "[see(also) the rest]", "a\ndtype"),
    ],
)
def test_a_text_with_brackets_is_a_text(text):
    assert texts_of(text) == [text]


@pytest.mark.parametrize("cell", ["['a', " + "[" * 5000 + "'a'", "['a', 'b'" + "(" * 5000])
def test_a_list_that_never_ends_is_refused(cell):
    with pytest.raises(CellError):
        contexts_of(cell)
