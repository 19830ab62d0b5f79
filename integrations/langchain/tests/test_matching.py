"""Where texts stand in prompts."""

import html
import json
import random
import textwrap
import threading
import time

import pytest
from rag_programs import QUESTION, rag_chain, retriever, texts_of

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


@pytest.mark.parametrize(
    ("said", "held"),
    [
        ("At night.", True),
        ("At   night.", True),
        ("yes", False),
        ("", False),
        ("Beta works at night, every weekday of the year, and rests on Sundays.", False),
    ],
)
def test_what_a_model_said_is_held_if_two_words_of_it_stand_there(said, held):
    assert PromptText("Notes: At night. Answer from the notes, yes.").holds(said) is held


def test_what_stands_in_a_text_that_was_found_is_not_held_as_speech():
    prompt = PromptText(BETA)
    prompt.find([BETA])

    assert not prompt.holds("settles card payments")


def library(varied):
    words = random.Random(0)
    if varied:
        return [" ".join(f"word{words.randrange(900)}" for _ in range(120_000)) for _ in range(10)]
    return [f"Volume {number}. " + "page of the same book " * 45_000 for number in range(10)]


def longest_wait_of_others(work):
    """How long another thread had to wait at most while this one worked, in seconds; and what the work gave."""
    done = threading.Event()
    gaps = []

    def tick():
        last = time.perf_counter()
        while not done.wait(0.0005):
            now = time.perf_counter()
            gaps.append(now - last)
            last = now

    ticker = threading.Thread(target=tick)
    ticker.start()
    result = work()
    done.set()
    ticker.join()
    return max(gaps, default=0.0), result


@pytest.mark.slow
@pytest.mark.parametrize("varied", [True, False], ids=["varied", "repetitive"])
@pytest.mark.parametrize(
    "write",
    [
        "\n\n".join,
        json.dumps,
        lambda texts: "\n\n".join(texts[:5]),
        lambda texts: "\n".join(t[500:3500] for t in texts),
    ],
    ids=["joined", "json", "five of ten", "excerpts"],
)
def test_a_record_with_ten_documents_of_a_megabyte_never_holds_other_threads_up_for_long(captured, varied, write):
    texts = library(varied)
    rag_chain(retriever(*texts), formatter=lambda found: write(texts_of(found))).invoke(QUESTION, captured.config)

    waited, record = longest_wait_of_others(captured.record)

    assert record.contexts
    assert waited < 0.1
