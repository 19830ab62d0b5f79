"""Which documents are an answer's contexts: those in the prompts behind it, in the shape of well-known programs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from written_logs import ANSWER, FILTER, HOSE, MOTOR, PUMP, QUESTION, WrittenLog, calls, documents

from ragspan.request.contents import MESSAGE, Call, Document, PayloadMessage

LONG = f"{FILTER} {PUMP} {MOTOR}"
BEGINNING = FILTER.partition(" and")[0]
NOTES = {
    "sentences": ("Three years.", "Four hundred watts."),
    "words": ("Three", "400"),
    "Chinese": ("保修期为三年。", "功率为四百瓦。"),
    "JSON, and two sentences": (
        '{"note": "three years of warranty"}',
        "It draws four hundred watts. That is a lot.",
    ),
    "the beginning of a document": ("The pump carries a warranty of three years.", "Four hundred watts."),
}


def notes(first: str, second: str) -> Callable[[WrittenLog], Any]:
    """A model makes a note of each document; another one answers from the notes."""

    def write(log: WrittenLog) -> str:
        for text, note in ((PUMP, first), (MOTOR, second)):
            log.searches(text)
            log.says(note, f"{text}\n{QUESTION}")
        log.says(ANSWER, f"{first}\n{second}\n{QUESTION}")
        return ANSWER

    return write


def a_better_question(log: WrittenLog) -> str:
    """The model that writes it saw a document which a second search replaced."""
    better = "What warranty does the pump carry exactly?"
    log.steps({"question": QUESTION}, {"context": documents(HOSE), "turn": 1})
    log.says(better, f"Improve {QUESTION}, for this is useless: {HOSE}")
    log.steps({"question": better}, {"context": documents(PUMP), "turn": 2})
    log.says(ANSWER, f"Context:\n{PUMP}\n\nQuestion: {better}")
    return ANSWER


def two_answers_in_fields(log: WrittenLog) -> dict[str, str]:
    log.searches(PUMP, MOTOR)
    log.says("It is three years.", PUMP)
    log.says("Watts", MOTOR)
    return {"period": "It is three years.", "power": "Watts"}


def a_check_of_the_answer(log: WrittenLog) -> str:
    """A judging model sees more documents, and more of them, than the answering one."""
    log.searches(PUMP, FILTER, MOTOR)
    log.says(ANSWER, f"{PUMP}\n{BEGINNING}\n{QUESTION}")
    log.says("grounded", f"Is this grounded? {ANSWER}\n{PUMP}\n{FILTER}\n{MOTOR}")
    return ANSWER


def a_grade_of_each_document(log: WrittenLog) -> str:
    log.searches(PUMP, FILTER)
    for grade, text in (("yes", PUMP), ("no", FILTER)):
        log.says(grade, f"Is this relevant? {text}")
    log.says(ANSWER, f"{PUMP}\n{QUESTION}")
    return ANSWER


def a_passage_to_search_with(*, by_a_tool: bool = False) -> Callable[[WrittenLog], Any]:
    passage = "A hose and a motor are kept dry."

    def write(log: WrittenLog) -> str:
        log.searches(PUMP)
        log.says(passage, f"Write a passage on: {QUESTION}\n{PUMP}")
        if by_a_tool:
            log.uses([documents(HOSE, MOTOR)], {"query": passage, "k": 1})
        else:
            log.searches(HOSE, MOTOR, query=passage)
        log.says(ANSWER, f"Context: {HOSE}\n{MOTOR}\nQuestion: {QUESTION}. {passage}")
        return ANSWER

    return write


def an_answer_that_was_thrown_away(log: WrittenLog) -> str:
    for reply, text in (("It has no warranty at all.", FILTER), (ANSWER, PUMP)):
        log.searches(text)
        log.says(reply, f"{text}\n{QUESTION}")
    return ANSWER


def a_window_and_its_sentence(log: WrittenLog) -> str:
    window = f"It is blue. {PUMP} It is heavy."
    log.steps(QUESTION, [Document(PUMP, "1", {"window": window}), Document(HOSE, "2", {"window": HOSE})])
    log.says(ANSWER, [PayloadMessage("system", window), PayloadMessage("human", f"{PUMP}\n{HOSE}\n{QUESTION}")])
    return ANSWER


def a_sentence_of_a_long_reply(log: WrittenLog) -> str:
    log.searches(PUMP, MOTOR)
    log.says(f"{FILTER} {ANSWER} {HOSE}", f"{PUMP}\n{QUESTION}")
    log.says("It runs for three days.", f"{MOTOR}\n{QUESTION}")
    return ANSWER


def partial_answers_without_a_model(log: WrittenLog) -> str:
    parts = {"It runs for three years.": PUMP, "It draws four hundred watts.": MOTOR}
    for reply, text in parts.items():
        log.searches(text)
        log.says(reply, f"{text}?")
    return " ".join(parts)


def a_draft_that_is_revised(log: WrittenLog) -> str:
    draft, critique = "It runs for some years, perhaps three.", "Be more precise about the number."
    log.searches(PUMP, FILTER)
    log.says(draft, f"{PUMP}\n{FILTER}\n{QUESTION}")
    log.says(critique, f"Criticise this draft: {draft}")
    log.says(ANSWER, f"Revise.\nDraft: {draft}\nCritique: {critique}")
    return ANSWER


def a_document_in_two_prompts(log: WrittenLog) -> str:
    draft = "It runs for some years, perhaps three."
    log.searches(LONG)
    log.says(draft, f"{LONG.removesuffix(MOTOR)}\n{QUESTION}")
    log.says(ANSWER, f"Draft: {draft}\n{MOTOR}\n{QUESTION}")
    return ANSWER


def an_object_that_a_model_filled(log: WrittenLog) -> str:
    filled = {"answer": "It runs for some years, perhaps three."}
    log.searches(PUMP)
    log.says(PayloadMessage("ai", calls=[Call("Draft", "7", filled)]), f"{PUMP}\n{QUESTION}")
    log.uses(f"answer='{filled['answer']}'", filled)
    log.says(ANSWER, f"Mend this: {filled['answer']}")
    return ANSWER


def a_translation(log: WrittenLog) -> str:
    log.searches(PUMP)
    log.says(ANSWER, f"{PUMP}\n{QUESTION}")
    log.says("Sie läuft drei Jahre.", f"Translate into German: {ANSWER}")
    return "Sie läuft drei Jahre."


def an_index_of(texts: tuple[str, str], prompt: str) -> Callable[[WrittenLog], Any]:
    """What is searched are questions; each has a text beside it, which is what the program writes into the prompt."""

    def write(log: WrittenLog) -> str:
        asked = ("Which warranty?", "Which hose?")
        beside = [{"title": "Pump", "passage": text} for text in texts]
        log.steps(QUESTION, [Document(own, None, about) for own, about in zip(asked, beside, strict=True)])
        log.says(ANSWER, f"{prompt}\n{QUESTION}")
        return ANSWER

    return write


def asked_with(*messages: PayloadMessage, kept: bool = False, searched: bool = True) -> Callable[[WrittenLog], Any]:
    """A search finds the pump and the hose, or the state has kept the pump from an earlier turn; a model is given these messages."""

    def write(log: WrittenLog) -> str:
        if kept:
            log.steps({"messages": [MESSAGE, MESSAGE], "found": documents(PUMP)}, {})
        if searched:
            log.searches(PUMP, HOSE)
        log.says(ANSWER, messages)
        return ANSWER

    return write


found_again, kept = partial(asked_with, kept=True), partial(asked_with, kept=True, searched=False)


ASKED, FOUND = PayloadMessage("human", QUESTION), PayloadMessage("ai", f"I have found: {PUMP}")
TALK = (PayloadMessage("human", "What do you know?"), PayloadMessage("ai", "Nothing yet."))
AUGMENTED = (PayloadMessage("human", f"What do you know? Use: {PUMP}"), TALK[1])
HOSE_AND_PUMP = PayloadMessage("human", f"{HOSE}\n{PUMP}\n{QUESTION}")
SEARCH_RESULT = {"type": "search_result", "title": "Page", "content": [{"type": "text", "text": PUMP}]}
DOCUMENT = {"type": "document", "title": "Manual", "source": {"type": "text", "media_type": "text/plain", "data": PUMP}}
HISTORY = (PayloadMessage("human", "What do you know?"), PayloadMessage("ai", f"This: {PUMP}"))

PROGRAMS: dict[str, tuple[Callable[[WrittenLog], Any], list[str]]] = {
    **{f"notes: {kind}": (notes(*texts), [PUMP, MOTOR]) for kind, texts in NOTES.items()},
    "a better question": (a_better_question, [PUMP]),
    "two answers in fields": (two_answers_in_fields, [PUMP, MOTOR]),
    "a check of the answer": (a_check_of_the_answer, [PUMP, BEGINNING]),
    "a grade of each document": (a_grade_of_each_document, [PUMP]),
    "a passage to search with": (a_passage_to_search_with(), [HOSE, MOTOR]),
    "a passage to call a tool with": (a_passage_to_search_with(by_a_tool=True), [HOSE, MOTOR]),
    "an answer that was thrown away": (an_answer_that_was_thrown_away, [PUMP]),
    "a window and its sentence": (a_window_and_its_sentence, [f"It is blue. {PUMP} It is heavy.", HOSE]),
    "a sentence of a long reply": (a_sentence_of_a_long_reply, [PUMP]),
    "partial answers without a model": (partial_answers_without_a_model, [PUMP, MOTOR]),
    "a draft that is revised": (a_draft_that_is_revised, [PUMP, FILTER]),
    "a document in two prompts": (a_document_in_two_prompts, [LONG]),
    "an object that a model filled": (an_object_that_a_model_filled, [PUMP]),
    "a translation": (a_translation, [PUMP]),
    "passages beside an index of questions": (an_index_of((PUMP, HOSE), HOSE), [HOSE]),
    "what both have beside them, of their source": (an_index_of((PUMP, PUMP), PUMP), []),
    "the program's words under the assistant's role, before": (asked_with(FOUND, ASKED), [PUMP]),
    "the program's words under the assistant's role, after": (asked_with(ASKED, FOUND), [PUMP]),
    "a greeting before the conversation": (
        asked_with(PayloadMessage("system", PUMP), PayloadMessage("ai", "How can I help?"), ASKED),
        [PUMP],
    ),
    **{
        f"a {block['type']} as a content block": (
            asked_with(PayloadMessage("human", [block, {"type": "text", "text": QUESTION}])),
            [PUMP],
        )
        for block in (SEARCH_RESULT, DOCUMENT)
    },
    "an earlier answer that quotes a document": (
        asked_with(*HISTORY, PayloadMessage("human", f"{HOSE}\n{QUESTION}")),
        [HOSE],
    ),
    "found, before the history": (asked_with(PayloadMessage("human", PUMP), *TALK, ASKED), [PUMP]),
    "found, in a message of an earlier turn as well": (asked_with(*AUGMENTED, HOSE_AND_PUMP), [HOSE, PUMP]),
    "found and kept, in a message of an earlier turn as well": (found_again(*AUGMENTED, HOSE_AND_PUMP), [HOSE, PUMP]),
    "kept, in a message of an earlier turn": (kept(*AUGMENTED, ASKED), []),
    "kept, shown again by the system": (kept(PayloadMessage("system", f"Use: {PUMP}"), *TALK, ASKED), [PUMP]),
    "kept, shown again in the last message": (kept(*TALK, PayloadMessage("human", f"{QUESTION}\nUse: {PUMP}")), [PUMP]),
    "kept, shown again afterwards": (kept(*TALK, ASKED, PayloadMessage("human", f"Use: {PUMP}")), [PUMP]),
    "kept, shown again in a text": (kept(PayloadMessage("human", f"{TALK}\n{QUESTION}\n{PUMP}")), [PUMP]),
    "artifacts of tools that nobody asks": (
        lambda log: (
            log.says(ANSWER, [PayloadMessage("tool", text, artifact=documents(text)) for text in (PUMP, HOSE)])
            or ANSWER
        ),
        [PUMP, HOSE],
    ),
    "a tool's message of the program's own": (
        asked_with(ASKED, calls({}), PayloadMessage("tool", PUMP, call_id="0")),
        [PUMP],
    ),
}


@pytest.mark.parametrize(("write", "contexts"), PROGRAMS.values(), ids=PROGRAMS)
def test_documents_in_the_prompts_behind_an_answer(write, contexts):
    log = WrittenLog()
    answer = log.answers(write(log))

    assert (answer.question, answer.contexts, answer.status) == (QUESTION, contexts, "complete")


def test_a_rank_is_that_in_the_first_search_that_found_the_document():
    pump, motor = documents(PUMP, MOTOR)
    log = WrittenLog({"question": QUESTION, "kept": [pump]})
    log.uses([motor, pump])
    log.uses([pump, motor])
    log.says(ANSWER, f"{PUMP}\n{MOTOR}\n{QUESTION}")

    assert [(one.text, one.rank) for one in log.ends(ANSWER).contexts] == [(PUMP, 1), (MOTOR, 0)]
