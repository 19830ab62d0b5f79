"""Matching takes linear time, whatever the texts hold, and never keeps other threads waiting for long."""

import random
import sys
import time
from collections.abc import Callable

import pytest

from ragspan.matching import PromptTexts

_random = random.Random(0)
VOCABULARY = ["".join(_random.choice("abcdefghijklmnop") for _ in range(_random.randint(2, 9))) for _ in range(5000)]
LONGEST_CALL = 0.02


def words(count):
    return " ".join(_random.choices(VOCABULARY, k=count))


def longest_call(work: Callable[[], object]) -> float:
    """Processor time of the longest call into C, during which no other thread can run; a second run may be better than a bad one."""
    first = _longest_call(work)
    return first if first < LONGEST_CALL else min(first, _longest_call(work))


def _longest_call(work: Callable[[], object]) -> float:
    began = [0.0]
    longest = [0.0]

    def watch(frame, event, function):
        if event == "c_call":
            began[0] = time.thread_time()
        elif event == "c_return":
            longest[0] = max(longest[0], time.thread_time() - began[0])

    sys.setprofile(watch)
    try:
        work()
    finally:
        sys.setprofile(None)
    return longest[0]


def in_reverse(count, length):
    texts = [words(length) for _ in range(count)]
    return "\n\n".join(reversed(texts)), texts


def cut_off(count, length):
    texts = [words(length) for _ in range(count)]
    return "\n\n".join(f"{text[: len(text) // 2]}..." for text in texts), texts


def one_word(count, length):
    return "a " * count * length, [f"{'a ' * length}b{number}" for number in range(count)]


@pytest.mark.parametrize(("make", "count"), [(in_reverse, 100), (cut_off, 100), (one_word, 20)])
def test_no_search_takes_a_long_call(make, count):
    prompt, texts = make(count, 200)

    assert longest_call(lambda: PromptTexts([prompt]).find(texts)) < LONGEST_CALL


def test_what_could_not_be_looked_for_to_the_end_is_known():
    """The text is in the prompt, behind more words than are read."""
    prompts = PromptTexts([words(600_000) + " " + "The carrier comes at four on every day but Sunday."])

    assert prompts.find(["The carrier comes at FOUR on every day but Sunday"]) == [[]]
    assert not prompts.is_complete


def test_texts_that_repeat_themselves_without_end_leave_the_search_incomplete_rather_than_long():
    prompts = PromptTexts(["a " * 100_000])

    prompts.find([f"{'a ' * 300}b{number}" for number in range(500)] + [f"{'a ' * 300}"])

    assert not prompts.is_complete


def test_all_of_many_documents_in_a_long_prompt_are_found():
    texts = [" ".join(f"word{number * factor % 7919}" for factor in range(1, 40)) for number in range(1, 2001)]
    prompts = PromptTexts(["Answer by these.", "\n\n".join(texts), "A question."])

    found = prompts.find(texts)

    assert prompts.is_complete
    assert all(len(own) == 1 and own[0].whole and own[0].part == 1 for own in found)
