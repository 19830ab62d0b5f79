"""What is in a prompt and grounds no answer, and records of which nothing is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from ground_programs import ASKED, FACT, RULES, Program, answers, by_hand, record_of, supports, tool
from written_logs import ANSWER, FILTER, PUMP, QUESTION, WrittenLog, documents

from ragspan.capturing.log import EventKind
from ragspan.records import MAX_BACKGROUND
from ragspan.request import ModelStep, StepStart, ToolStep
from ragspan.request.contents import Call, PayloadMessage


def messages(fact: str, written: Sequence[tuple[str, str]]) -> list[PayloadMessage]:
    """These, with the fact for each `%s`."""
    return [PayloadMessage(role, text.replace("%s", fact)) for role, text in written]


def beside_documents(*prompt: tuple[str, str], **filling: str) -> Program:
    """A template writes documents, and these messages stand beside them; `filling` are templates of its other variables."""

    def program(log: WrittenLog, fact: str) -> None:
        log.searches(PUMP)
        given = {"context": PUMP, "question": QUESTION, **{name: each % fact for name, each in filling.items()}}
        answers(log, fact, *log.fills(given, *messages(fact, prompt)))

    return program


def echo(write: Callable[[str], str], given: Callable[[str], object]) -> Program:
    """A tool returns what a model wrote."""

    def program(log: WrittenLog, fact: str) -> None:
        tool(write, given(fact))(log, fact)

    return program


def notes_read_again(log: WrittenLog, fact: str) -> None:
    log.searches(PUMP)
    write, read = (
        PayloadMessage("ai", calls=[Call("file", at, given)]) for at, given in (("1", {"text": fact}), ("2", {"at": 1}))
    )
    log.says(write, [ASKED])
    log.uses("Saved.", {"text": fact}, "1")
    log.says(read, [ASKED, write])
    log.uses(f"notes: {fact}", {"at": 1}, "2")
    prompt = (
        write,
        PayloadMessage("tool", "Saved.", call_id="1"),
        read,
        PayloadMessage("tool", f"notes: {fact}", call_id="2"),
    )
    answers(log, fact, PayloadMessage("system", PUMP), ASKED, *prompt)


def a_draft_of_this_request(write: Callable[[str], str], *, is_object: bool = False) -> Program:
    def program(log: WrittenLog, fact: str) -> None:
        filled = {"title": "Kit", "answer": fact}
        log.searches(PUMP)
        log.says(PayloadMessage("ai", calls=[Call("Draft", "7", filled)]) if is_object else fact, f"{PUMP}\n{QUESTION}")
        if is_object:
            log.uses(write(fact), filled)
        answers(log, fact, PayloadMessage("human", f"{PUMP}\nMend this draft:\n{write(fact)}\nBe brief."))

    return program


def instructions_around_a_draft_that_quotes_a_document(log: WrittenLog, fact: str) -> None:
    quotes = f"The manual says this: {PUMP}"
    log.searches(PUMP)
    log.says(quotes, f"{PUMP}\n{QUESTION}")
    answers(log, fact, PayloadMessage("human", f"Mend the English, as in '{fact}': {quotes}"))


def told(*prompt: tuple[str, str]) -> Program:
    """A search finds a document; a model is given these messages."""
    return lambda log, fact: (log.searches(PUMP), answers(log, fact, *messages(fact, prompt)))


def an_agent_as_a_tool(log: WrittenLog, fact: str) -> None:
    """It brings the grounds of its own prompt, and no words of its own."""
    call = PayloadMessage("ai", calls=[Call("ask", "7", {"about": "kit"})])
    log.searches(PUMP)
    log.says(call, [ASKED])
    log.log.note(EventKind.START, "tool", 0, {"about": "kit"}, StepStart(ToolStep, "ask", {"call_id": "7"}))
    log.log.note(EventKind.START, "inner", "tool", [f"Use: {FILTER}"], StepStart(ModelStep, "model"))
    log.log.note(EventKind.END, "inner", None, PayloadMessage("ai", fact), ())
    log.log.note(EventKind.END, "tool", None, fact)
    answers(log, fact, ASKED, call, PayloadMessage("tool", fact, call_id="7"))


BOTH = f"{PUMP}\n{QUESTION}"
INVENTED: dict[str, Program] = {
    "by an agent as a tool": an_agent_as_a_tool,
    "in the instructions of a template": beside_documents(
        ("system", f"{RULES} Never say: %s\n{PUMP}"), ("human", QUESTION)
    ),
    "in an example of a template": beside_documents(
        ("system", f"{RULES}\nExample: Q: Price? A: %s\n\n{PUMP}"), ("human", QUESTION)
    ),
    "in an example that is filled in": beside_documents(
        ("system", f"{RULES}\nExample: %s\n\n{PUMP}"), ("human", QUESTION), few_shot="Example: %s"
    ),
    "in the format's instructions": beside_documents(
        ("system", f'{PUMP}\nAnswer as JSON: {{"enum": ["%s"]}}'), ("human", QUESTION), output_format='{"enum": ["%s"]}'
    ),
    "in example messages": beside_documents(
        ("system", f"{RULES}\n{PUMP}"), ("human", "Price?"), ("ai", "%s"), ("human", QUESTION)
    ),
    "in a system message without documents": told(("system", f"{RULES} %s"), ("human", BOTH)),
    "in an earlier message of the user": told(("human", "%s"), ("ai", "Yes?"), ("human", BOTH)),
    "in another message of the user": told(("system", f"Use: {PUMP}"), ("human", QUESTION), ("human", "%s")),
    "in an earlier answer": told(("human", "Price?"), ("ai", "%s"), ("human", BOTH)),
    "in a conversation as a text": by_hand(lambda fact: f"{PUMP}\n\nHuman: Price?\nAI: {fact}\nHuman: Thanks."),
    "in what a bot said in a text": by_hand(lambda fact: f"{PUMP}\n\nBot: {fact}"),
    "in what a Chinese assistant said in a text": by_hand(lambda fact: f"{PUMP}\n\n助手\uff1a{fact}"),
    "in what the user said in a conversation as a text": by_hand(
        lambda fact: f"{PUMP}\n\nUser: {fact}\nAssistant: Yes?"
    ),
    "in a thought that a tool repeats": echo(lambda fact: f"Thought noted: {fact}", lambda fact: {"thought": fact}),
    "in a list of things to do": echo(
        lambda fact: f"Updated todo list to [{{'content': '{fact}', 'status': 'pending'}}]",
        lambda fact: {"todos": [{"content": fact, "status": "pending"}]},
    ),
    "in notes that are read again": notes_read_again,
    "in a draft of this request": a_draft_of_this_request(str),
    "in a draft between tags": a_draft_of_this_request(lambda fact: f"<draft>{fact}</draft>"),
    "in an object that a model filled": a_draft_of_this_request(
        lambda fact: f"title='Kit' answer='{fact}'", is_object=True
    ),
    "around a draft that quotes a document": instructions_around_a_draft_that_quotes_a_document,
    "in a prompt of a model that did not stand behind the answer": lambda log, fact: (
        log.searches(PUMP),
        log.says("yes", f"Is this so? {fact}"),
        answers(log, fact, PayloadMessage("system", PUMP), ASKED),
    ),
}


@pytest.mark.parametrize("program", INVENTED.values(), ids=INVENTED)
def test_instructions_the_user_and_models_support_no_claim(program):
    assert not supports(record_of(program, FACT), FACT)


# Unknown, or none


@pytest.mark.parametrize(
    ("write", "why"),
    [
        (lambda log: log.says(ANSWER, [ASKED]), "unmarked_text"),
        (lambda log: log.says(PayloadMessage("ai", ANSWER, searched=True), [ASKED]), "provider_search"),
        (
            lambda log: (log.searches(PUMP), log.says(ANSWER, [PayloadMessage("human", PUMP, unread=["page.png"])])),
            "picture",
        ),
        *(
            (lambda log, name=name: (log.steps(QUESTION, "Hm.", name), log.says(ANSWER, [ASKED])), "unseen_prompt")
            for name in ("RemoteRunnable", "RemoteGraph")
        ),
        (lambda log: log.steps(QUESTION, documents(PUMP)), "unseen_prompt"),
        (lambda log: None, "unseen_prompt"),
        (lambda log: (log.searches(PUMP), log.says(ANSWER, [])), "unseen_prompt"),
        (lambda log: (log.searches(PUMP), log.says("pump", QUESTION), log.says(ANSWER, " ")), "unseen_prompt"),
        (lambda log: (log.steps(QUESTION, []), log.says(ANSWER, f"{PUMP}\n{QUESTION}")), "unmarked_text"),
        (lambda log: (log.steps(QUESTION, []), log.says(ANSWER, QUESTION)), None),
        (lambda log: (log.steps(QUESTION, []), log.says(ANSWER, [PayloadMessage("system", RULES), ASKED])), None),
        (
            lambda log: (log.searches(PUMP), log.says(ANSWER, "Die Pumpe hat drei Jahre Garantie ab dem Kauf.")),
            "unmarked_text",
        ),
        (
            lambda log: (
                log.steps(QUESTION, []),
                log.says(ANSWER, [PayloadMessage("human", "Hm?"), PayloadMessage("ai", f"Yes. {ANSWER}"), ASKED]),
            ),
            "earlier_answer",
        ),
    ],
)
def test_whether_documents_reached_the_prompt_is_none_or_unknown(write, why):
    log = WrittenLog()
    write(log)
    record = log.ends(ANSWER)

    assert (record.contexts, record.contexts_unknown) == (() if why is None else None, why)


@pytest.mark.parametrize(
    ("said", "response", "is_from_model"),
    [
        (ANSWER, ANSWER, True),
        (ANSWER, f"Dear reader, {ANSWER} Yours.", True),
        (f"{ANSWER} Ask the service.", "It runs for three years, ask them.", True),
        ("It is forty euros.", "This request was blocked by our policy engine, ticket 4711.", False),
    ],
)
def test_whether_the_response_is_what_a_model_said(said, response, is_from_model):
    log = WrittenLog()
    log.searches(PUMP)
    log.says(said, f"{PUMP}\n{QUESTION}")

    record = log.ends(response)

    assert (record.from_model, record.prompts_seen, len(record.contexts)) == (is_from_model, True, 1)


# Small rules that nothing else notices


def test_a_model_that_failed_is_not_behind_an_answer():
    begun = "It runs for two or"
    log = WrittenLog()
    log.searches(PUMP, FILTER)
    log.fails(f"{FILTER}\n{QUESTION}", begun)
    log.says(ANSWER, f"{PUMP}\n{QUESTION}\nGo on:\n{begun}")

    assert log.answers(ANSWER).contexts == [PUMP]


@pytest.mark.parametrize("more", [0, 1])
def test_of_more_evidence_than_a_record_keeps_it_has_as_much_as_it_keeps(more):
    log = WrittenLog()
    log.searches(PUMP)
    log.says(ANSWER, [ASKED, PayloadMessage("tool", f"{'word ' * MAX_BACKGROUND}"[: MAX_BACKGROUND - 1 + more] + ".")])
    record = log.ends(ANSWER)

    assert [len(one.text) for one in record.background] == [MAX_BACKGROUND]
    assert record.background_truncated == bool(more)


@pytest.mark.parametrize(("words", "why"), [(7, None), (8, "unmarked_text")])
@pytest.mark.parametrize("role", ["tool", "human", "system"])
def test_eight_words_that_nothing_explains_may_be_a_document(role, words, why):
    log = WrittenLog()
    log.searches(PUMP)
    log.says(
        ANSWER, [PayloadMessage("human", QUESTION), PayloadMessage(role, " ".join(f"word{at}" for at in range(words)))]
    )

    assert log.ends(ANSWER).contexts_unknown == why
