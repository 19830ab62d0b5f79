from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from ragspan.judges.overlap.context_reader import (
    MAX_CHARACTERS,
    ContextReader,
    within_bounds,
)


def sentences_of(context):
    return list(map(context.keys_of, range(len(context))))


def test_short_contexts_are_read_whole_beside_a_huge_one():
    huge, short = ContextReader().read(within_bounds(["word " * MAX_CHARACTERS, "a short context"]))

    assert sentences_of(short) == [["a", "short", "context"]]
    assert 0 < len("word ") * len(huge.keys) <= MAX_CHARACTERS


def test_a_context_of_json_is_read_as_its_statements():
    (context,) = ContextReader().read(['{"name": "Blue Door", "open": false}'])

    assert context.structured
    assert sentences_of(context) == [["name", "blue", "door"], ["no", "open"]]
    assert [flag.holds for flag in context.flags] == [False]


def test_what_is_found_out_about_a_sentence_is_found_out_once():
    (context,) = ContextReader().read(["It opened in 1889. It is tall."])
    asked = []

    def length(sentence, language):
        asked.append(sentence)
        return len(language.tokens(sentence))

    assert [context.fact(length, 0), context.fact(length, 1), context.fact(length, 0)] == [4, 3, 4]
    assert asked == ["It opened in 1889.", "It is tall."]


def test_a_context_is_known_by_its_text():
    reader = ContextReader()

    first, second, other = reader.read(["It is tall.", "It is tall. "[:-1], "It is tall!"])

    assert first is second
    assert other is not first
    assert len(reader) == 2


@pytest.mark.parametrize("text", ["x. " * 3000, "x\n" * 3000, "x • " * 3000, "x。" * 3000])
def test_a_context_is_read_alike_alone_and_beside_others(text):
    reader = ContextReader()

    (alone,) = reader.read([text])
    beside_others = reader.read([text, "word " * MAX_CHARACTERS])[0]

    assert len(alone) == 3000
    assert sentences_of(beside_others) == sentences_of(alone)


def test_what_is_kept_is_bounded_by_its_bytes():
    reader = ContextReader(max_bytes=1 << 20)
    for number in range(500):
        reader.read([f"{number} " * 500])

    assert 0 < len(reader) < 100


def test_what_is_asked_for_again_outlives_what_is_not():
    reader = ContextReader(max_bytes=1 << 20)
    (popular,) = reader.read(["It is tall."])
    for number in range(500):
        reader.read([f"{number} " * 500])
        assert reader.read(["It is tall."]) == (popular,)


def test_threads_share_a_reader():
    reader = ContextReader(max_bytes=1 << 18)
    texts = [f"The number is {number}. It opened in {number}." for number in range(64)] * 20

    with ThreadPoolExecutor(8) as pool:
        read = list(pool.map(lambda text: reader.read([text])[0], texts))

    assert [context.keys for context in read] == [ContextReader().read([text])[0].keys for text in texts]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_fork_goes_on_with_what_was_kept():
    reader = ContextReader()
    (context,) = reader.read(["It opened in 1889."])

    child = os.fork()
    if not child:
        os._exit(0 if reader.read(["It opened in 1889."]) == (context,) else 1)
    _, status = os.waitpid(child, 0)

    assert os.waitstatus_to_exitcode(status) == 0
