"""One word, or a few: documents that are no longer, and drafts of a single word."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import pytest
from written_logs import HOSE, PUMP, QUESTION, WrittenLog

from ragspan.request.contents import PayloadMessage

ANSWER = "It lasts three years, as the manual says."
ASKED = PayloadMessage("human", QUESTION)


def found_in(log: WrittenLog, *prompt: PayloadMessage) -> Sequence[str] | None:
    log.says(ANSWER, list(prompt))
    return log.answers(ANSWER).contexts


# Short documents


@pytest.mark.parametrize(
    "write",
    [
        "\n".join,
        ", ".join,
        " ".join,
        json.dumps,
        lambda texts: "\n".join(f"[{at}] {one}" for at, one in enumerate(texts)),
    ],
    ids=["lines", "a list", "a row", "JSON", "numbered"],
)
@pytest.mark.parametrize("by_template", [True, False])
def test_short_documents_that_stand_by_themselves(write, by_template):
    log = WrittenLog()
    log.searches("Turin", "Graz")
    prompt: tuple[PayloadMessage, ...] = (
        PayloadMessage("system", f"Name the right place.\n\n{write(['Turin', 'Graz'])}"),
        ASKED,
    )
    if by_template:
        prompt = log.fills({"context": write(["Turin", "Graz"]), "question": QUESTION}, *prompt)

    assert found_in(log, *prompt) == ["Turin", "Graz"]


@pytest.mark.parametrize(
    "instructions",
    ["Answer from the context only.", "Context:", "Use the context, and only the context, for your answer."],
)
@pytest.mark.parametrize("by_template", [True, False])
def test_short_documents_that_were_dropped_and_whose_words_the_instructions_have(instructions, by_template):
    log = WrittenLog()
    log.searches("Context", PUMP, "only", "the context")
    prompt: tuple[PayloadMessage, ...] = (PayloadMessage("system", f"{instructions}\n\n{PUMP}"), ASKED)
    if by_template:
        prompt = log.fills({"context": PUMP, "question": QUESTION}, *prompt)

    assert found_in(log, *prompt) == [PUMP]


# Drafts


def drafted(
    draft: str, write: Callable[[str], str], *, filled: bool = False, graded: Sequence[str] = ()
) -> Sequence[str] | None:
    """A first model answers by the documents, in one word, and a second one words it."""
    log = WrittenLog()
    log.searches(PUMP, HOSE)
    for grade in graded:
        log.says(grade, f"Is it relevant? {HOSE}")
    log.says(draft, f"{PUMP}\n\n{QUESTION}")
    prompt: tuple[PayloadMessage, ...] = (PayloadMessage("human", write(draft)),)
    if filled:
        prompt = log.fills({"draft": draft, "question": QUESTION}, *prompt)
    return found_in(log, *prompt)


@pytest.mark.parametrize("draft", ["Yes.", "no", "3", "**Three**", "三"])
@pytest.mark.parametrize(
    "write",
    [
        lambda draft: f"Question: {QUESTION}\nShort answer: {draft}\nSay it in a whole sentence.",
        lambda draft: f"Short answer: {draft}",
        lambda draft: f'Turn "{draft}" into a sentence. {QUESTION}',
    ],
    ids=["a line", "the end", "quoted"],
)
def test_a_draft_of_one_word_brings_the_documents_of_its_prompt(draft, write):
    assert drafted(draft, write) == [PUMP]


def test_a_draft_of_one_word_inside_a_sentence_of_a_template():
    assert drafted("Three", lambda draft: f"Say that it is {draft} years. {QUESTION}", filled=True) == [PUMP]


def test_one_word_inside_a_sentence_is_no_draft():
    assert not drafted("Yes", lambda _: f"Say yes where you can, and be polite. {QUESTION}")


def test_words_of_which_there_are_several_are_grades():
    write = f"Relevant: yes\n{HOSE}\n{QUESTION}".replace
    assert drafted("yes", lambda draft: write("yes", draft), graded=["no", "yes"]) == [HOSE]
