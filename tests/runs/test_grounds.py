"""What an answer is judged against: a judge that knows words alone finds true what the prompt held, and nothing else.

Each program gives one answer. The judge supports it if its words stand in one of the texts that it gets.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import pytest
from written_logs import ANSWER, FILTER, HOSE, PUMP, QUESTION, WrittenLog, documents

from ragspan.capturing.log import EventKind
from ragspan.matching import words_of
from ragspan.records import RagRecord
from ragspan.runs.contents import MESSAGE, Call, Document, PayloadMessage

FACT = "The spare kit costs forty euros and is sold in Lyon."
RULES = "You are a friendly assistant of the pump works; answer in two short sentences, and be polite to everybody."
ASKED = PayloadMessage("human", QUESTION)
LONG = f"{PUMP} Its housing is made of cast iron and painted blue in the works at Graz. {FACT}"

Program = Callable[[WrittenLog, str], object]
"""Writes the log of a request whose prompt holds a fact somewhere, and is given that fact."""


def supports(record: RagRecord, claim: str) -> bool:
    """Whether the words of a claim stand in a row in one of the texts that a judge of this record gets."""
    wanted = f" {' '.join(words_of(claim)[0])} "
    texts = [*(each.text for each in record.contexts or ()), *(each.text for each in record.background)]
    return any(wanted in f" {' '.join(words_of(text)[0])} " for text in texts)


def record_of(program: Program, claim: str) -> RagRecord:
    log = WrittenLog()
    program(log, claim)
    record = log.ends(claim)
    assert record is not None
    return record


def answers(log: WrittenLog, claim: str, *prompt: PayloadMessage) -> None:
    log.says(claim, list(prompt))


# Evidence


def found(write: Callable[[str], str]) -> Program:
    """A search finds a document with the fact, and a formatter writes it into the prompt in its way."""

    def program(log: WrittenLog, fact: str) -> None:
        log.searches(f"{PUMP} {fact}", FILTER)
        answers(log, fact, PayloadMessage("system", f"Use:\n{write(f'{PUMP} {fact}')}"), ASKED)

    return program


def filled(write: Callable[[str], str], variable: str = "context") -> Program:
    """A prompt template is filled with documents and what a formatter wrote beside them."""

    def program(log: WrittenLog, fact: str) -> None:
        log.searches(PUMP, FILTER)
        given = write(fact)
        prompt = log.fills(
            {variable: given, "question": QUESTION},
            PayloadMessage("system", f"{RULES}\n{given}"),
            PayloadMessage("human", QUESTION),
        )
        answers(log, fact, *prompt)

    return program


def by_hand(write: Callable[[str], str], role: str = "human") -> Program:
    """A function makes a message of its own from documents and something else."""

    def program(log: WrittenLog, fact: str) -> None:
        log.searches(PUMP)
        answers(log, fact, PayloadMessage(role, write(fact)), ASKED)

    return program


def tool(write: Callable[[str], str], given: object = None, *, beside_search: bool = True) -> Program:
    """A tool that is not a search returns a text."""

    def program(log: WrittenLog, fact: str) -> None:
        if beside_search:
            log.searches(PUMP)
        calls = PayloadMessage("ai", calls=[Call("look_up", "7", given or {"query": "spare kit"})])
        log.says(calls, [ASKED])
        log.uses(write(fact), given or {"query": "spare kit"}, "7")
        answers(
            log,
            fact,
            PayloadMessage("system", f"Use: {PUMP}"),
            ASKED,
            calls,
            PayloadMessage("tool", write(fact), call_id="7"),
        )

    return program


def earlier_turn(*messages: Callable[[str], PayloadMessage]) -> Program:
    """A turn before this one brought the fact, and a search of this turn found something else."""

    def program(log: WrittenLog, fact: str) -> None:
        log.searches(PUMP)
        history = [
            PayloadMessage("human", "What does the kit cost?"),
            *(write(fact) for write in messages),
            PayloadMessage("ai", "So."),
        ]
        answers(log, fact, *history, PayloadMessage("human", f"{QUESTION}\n{PUMP}"))

    return program


def kept_from_an_earlier_turn(log: WrittenLog, fact: str) -> None:
    log.steps({"messages": [MESSAGE, MESSAGE], "found": documents(fact)}, {})
    log.searches(PUMP)
    history = (PayloadMessage("human", f"What does it cost? Use: {fact}"), PayloadMessage("ai", "So."))
    answers(log, fact, *history, PayloadMessage("human", f"{QUESTION}\n{PUMP}"))


def beside(key: str, *, shown: Callable[[str], str]) -> Program:
    """A document's metadata has the fact, alone or around the document's own text."""

    def program(log: WrittenLog, fact: str) -> None:
        log.steps(QUESTION, [Document(PUMP, "1", {key: shown(fact)}), Document(FILTER, "2", {key: FILTER + " Often."})])
        answers(log, fact, PayloadMessage("system", f"Use: {shown(fact)}"), ASKED)

    return program


def a_summary(write: Callable[[str], str]) -> Program:
    """A model sums up what was said before; the next one answers from the summary."""

    def program(log: WrittenLog, fact: str) -> None:
        summary = "They spoke of the price of the kit and where it is sold."
        log.searches(PUMP)
        log.says(summary, f"Sum up this talk.\n{write(fact)}")
        answers(
            log,
            fact,
            PayloadMessage("human", f"Here is a summary:\n\n{summary}"),
            PayloadMessage("human", f"{QUESTION}\n{PUMP}"),
        )

    return program


def an_agent_as_a_tool(log: WrittenLog, fact: str) -> None:
    """What the inner agent read stands for what it said."""
    log.searches(fact)
    log.says("It is forty euros in Lyon.", f"Use: {fact}")
    told = PayloadMessage("tool", "It is forty euros in Lyon.", call_id="7")
    answers(log, fact, ASKED, PayloadMessage("ai", calls=[Call("ask", "7", {})]), told)


def a_tools_words_in_a_scratchpad(log: WrittenLog, fact: str) -> None:
    thought = "I should look up the price.\nAction: look_up\nAction Input: kit"
    log.searches(PUMP)
    log.says(thought, QUESTION)
    log.uses(fact, "kit")
    answers(log, fact, PayloadMessage("human", f"{RULES}\n{QUESTION}\n{thought}\nObservation: {fact}\nThought:"))


TRUE: dict[str, Program] = {
    "plain": found(str),
    "JSON": found(json.dumps),
    "JSON in JSON": found(lambda text: json.dumps(json.dumps(text))),
    "numbered lines": found(lambda text: "\n".join(f"{at}: {line}" for at, line in enumerate(text.split(". ")))),
    "quoted": found(lambda text: "> " + text.replace(". ", ".\n> ")),
    "tags": found(lambda text: f"<doc><p>{text}</p></doc>"),
    "the half of it": found(lambda text: text[len(PUMP) // 2 :]),
    "metadata before a document": filled(lambda fact: f"{fact}\n{PUMP}"),
    "metadata after a document": filled(lambda fact: f"{PUMP}\n{fact}"),
    "metadata between documents": filled(lambda fact: f"{PUMP}\nAbout: {fact}\n{FILTER}"),
    "metadata as JSON": filled(lambda fact: json.dumps([{"text": PUMP, "about": fact}, {"text": FILTER}])),
    "metadata in a template's other words": filled(
        lambda fact: f"Source: {{'about': '{fact}'}}\nContent: {PUMP}", "docs"
    ),
    "memories beside documents": by_hand(lambda fact: f"Memories: {fact}\nDocuments: {PUMP}", "system"),
    "memories under the user's role": by_hand(lambda fact: f"{PUMP}\nWhat is known of the user: {fact}\n{QUESTION}"),
    "memories under the assistant's role": by_hand(lambda fact: f"{PUMP}\nKnown: {fact}", "ai"),
    "a tool's text": tool(str),
    "a tool's JSON": tool(lambda fact: json.dumps([{"url": "a.example", "content": fact}])),
    "a tool's text where nothing was searched": tool(str, beside_search=False),
    "a tool's text that names its query": tool(lambda fact: f"Results for spare kit: {fact}"),
    "a tool's text that a long query stands in": tool(
        lambda fact: f"You asked what the spare kit costs in Lyon now. {fact}",
        {"query": "what the spare kit costs in Lyon now"},
    ),
    "a tool's row": tool(lambda fact: f"[('{fact}', 40)]", {"sql": "SELECT price FROM kits"}),
    "a tool of an earlier turn": earlier_turn(
        lambda fact: PayloadMessage("ai", calls=[Call("look_up", "1", {"q": "kit"})]),
        lambda fact: PayloadMessage("tool", fact, call_id="1"),
    ),
    "a document of an earlier turn": kept_from_an_earlier_turn,
    "a window around a sentence": beside("window", shown=lambda fact: f"Before it. {PUMP} {fact}"),
    "a parent of a chunk": beside("parent", shown=lambda fact: f"# Manual\n{fact}\n{PUMP}\nThe end of the page."),
    "an answer beside a question": beside("answer", shown=lambda fact: f"{fact} It is there."),
    "a summary of a document": a_summary(lambda fact: f"Human: Price?\nTool: {fact}\nAI: So."),
    "a summary of tagged messages": a_summary(
        lambda fact: f'<message type="human">Price?</message>\n<message type="tool">{fact}</message>'
    ),
    "an agent as a tool": an_agent_as_a_tool,
    "a tool's words in a scratchpad": a_tools_words_in_a_scratchpad,
}


@pytest.mark.parametrize("program", TRUE.values(), ids=TRUE)
def test_what_the_prompt_held_is_supported(program):
    assert supports(record_of(program, FACT), FACT)


# What is true by a document, and not by the prompt


def without_the_fact(write: Callable[[str], str]) -> Program:
    """A document has the fact; the prompt holds what a program left of it."""

    def program(log: WrittenLog, fact: str) -> None:
        log.searches(LONG)
        answers(log, fact, PayloadMessage("system", f"Use:\n{write(LONG)}"), ASKED)

    return program


NOT_SHOWN: dict[str, Program] = {
    "cut at the end": without_the_fact(lambda text: text.replace(FACT, "")),
    "cut in the middle of the fact": without_the_fact(lambda text: text[:-20]),
    "cut with dots": without_the_fact(lambda text: text[: len(PUMP) + 40] + "..."),
    "cut at the beginning": without_the_fact(lambda text: "..." + text[20:-60]),
    "a word masked": without_the_fact(lambda text: text.replace("forty", "[PRICE]")),
    "a word masked by stars": without_the_fact(lambda text: text.replace("Lyon", "****")),
    "a word masked, as JSON": without_the_fact(lambda text: json.dumps(text.replace("forty", "[PRICE]"))),
    "a word masked at the end": without_the_fact(lambda text: text.replace("Lyon.", "<CITY>")),
    "another word": without_the_fact(lambda text: text.replace("forty", "fifty")),
    "a sentence left out": without_the_fact(lambda text: text.replace("costs forty euros and is", "is")),
    "two words masked": without_the_fact(lambda text: text.replace("forty", "XXX").replace("Lyon", "[CITY]")),
    "a mask in a long text": lambda log, fact: without_the_fact(
        lambda text: " ".join(f"Page {at} is on part {at * 7}." for at in range(60))
    )(log, fact),
    "searched and left out": lambda log, fact: (
        log.searches(FACT, PUMP),
        answers(log, fact, PayloadMessage("system", PUMP), ASKED),
    ),
    "graded by another model": lambda log, fact: (
        log.searches(FACT, PUMP),
        log.says("no", f"Is this relevant? {FACT}"),
        answers(log, fact, PayloadMessage("system", PUMP), ASKED),
    ),
    "metadata that no prompt shows": lambda log, fact: (
        log.steps(QUESTION, [Document(PUMP, "1", {"about": FACT})]),
        answers(log, fact, PayloadMessage("system", PUMP), ASKED),
    ),
    "the text of a window that is not shown": lambda log, fact: (
        log.steps(QUESTION, [Document(PUMP, "1", {"window": f"{PUMP} {FACT}"})]),
        answers(log, fact, PayloadMessage("system", f"{PUMP} {HOSE}"), ASKED),
    ),
    "a tool whose text the program cut": lambda log, fact: (
        log.searches(PUMP),
        log.uses(f"{HOSE} {FACT}", {"query": "kit"}, "7"),
        answers(log, fact, PayloadMessage("system", PUMP), ASKED, PayloadMessage("tool", HOSE, call_id="7")),
    ),
}


@pytest.mark.parametrize("program", NOT_SHOWN.values(), ids=NOT_SHOWN)
def test_what_a_program_took_out_before_the_prompt_is_not_supported(program):
    assert not supports(record_of(program, FACT), FACT)


# What is no evidence


def beside_documents(*prompt: Callable[[str], PayloadMessage], filling: Sequence[str] = ()) -> Program:
    """A template writes documents, and these messages stand beside them; `filling` are its other variables' templates."""

    def program(log: WrittenLog, fact: str) -> None:
        log.searches(PUMP)
        given = {"context": PUMP, "question": QUESTION, **{f"v{at}": each % fact for at, each in enumerate(filling)}}
        answers(log, fact, *log.fills(given, *(write(fact) for write in prompt)))

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


def a_draft_of_this_request(log: WrittenLog, fact: str) -> None:
    log.searches(PUMP)
    log.says(fact, f"{PUMP}\n{QUESTION}")
    answers(log, f"{fact} It is so.", PayloadMessage("human", f"{PUMP}\nMend this draft:\n{fact}\nBe brief."))


def the_users_claim(log: WrittenLog, fact: str) -> None:
    log.searches(PUMP)
    answers(
        log,
        fact,
        PayloadMessage("system", f"Use: {PUMP}"),
        PayloadMessage("human", QUESTION),
        PayloadMessage("human", fact),
    )


SYSTEM = PayloadMessage("system", f"{RULES}\n{PUMP}")
INVENTED: dict[str, Program] = {
    "in the instructions of a template": beside_documents(
        lambda fact: PayloadMessage("system", f"{RULES} Never say: {fact}\n{PUMP}"), lambda fact: ASKED
    ),
    "in an example of a template": beside_documents(
        lambda fact: PayloadMessage("system", f"{RULES}\nExample: Q: Price? A: {fact}\n\n{PUMP}"), lambda fact: ASKED
    ),
    "in an example that is filled in": beside_documents(
        lambda fact: PayloadMessage("system", f"{RULES}\nExample: {fact}\n\n{PUMP}"),
        lambda fact: ASKED,
        filling=["Example: %s"],
    ),
    "in the format's instructions": beside_documents(
        lambda fact: PayloadMessage("system", f'{PUMP}\nAnswer as JSON: {{"enum": ["{fact}"]}}'),
        lambda fact: ASKED,
        filling=['{"enum": ["%s"]}'],
    ),
    "in the schema of a message of the program's own": by_hand(
        lambda fact: (
            f"{PUMP}\nAnswer by {{{json.dumps({'properties': {'a': {'type': 'string', 'description': fact}}})}}}"
        )
    ),
    "in example messages": beside_documents(
        lambda fact: SYSTEM,
        lambda fact: PayloadMessage("human", "Price?"),
        lambda fact: PayloadMessage("ai", fact),
        lambda fact: ASKED,
    ),
    "in a system message without documents": lambda log, fact: (
        log.searches(PUMP),
        answers(log, fact, PayloadMessage("system", f"{RULES} {fact}"), PayloadMessage("human", f"{PUMP}\n{QUESTION}")),
    ),
    "in an earlier message of the user": lambda log, fact: (
        log.searches(PUMP),
        answers(
            log,
            fact,
            PayloadMessage("human", fact),
            PayloadMessage("ai", "Yes?"),
            PayloadMessage("human", f"{PUMP}\n{QUESTION}"),
        ),
    ),
    "in another message of the user": the_users_claim,
    "in an earlier answer": lambda log, fact: (
        log.searches(PUMP),
        answers(
            log,
            fact,
            PayloadMessage("human", "Price?"),
            PayloadMessage("ai", fact),
            PayloadMessage("human", f"{PUMP}\n{QUESTION}"),
        ),
    ),
    "in a conversation as a text": by_hand(lambda fact: f"{PUMP}\n\nHuman: Price?\nAI: {fact}\nHuman: Thanks."),
    "in what the user said in a conversation as a text": by_hand(
        lambda fact: f"{PUMP}\n\nUser: {fact}\nAssistant: Yes?"
    ),
    "in a thought that a tool repeats": echo(lambda fact: f"Thought noted: {fact}", lambda fact: {"thought": fact}),
    "in a list of things to do": echo(
        lambda fact: f"Updated todo list to [{{'content': '{fact}', 'status': 'pending'}}]",
        lambda fact: {"todos": [{"content": fact, "status": "pending"}]},
    ),
    "in notes that are read again": notes_read_again,
    "in a draft of this request": a_draft_of_this_request,
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
        (lambda log: log.steps(QUESTION, documents(PUMP)), "unseen_prompt"),
        (lambda log: None, "unseen_prompt"),
        (lambda log: (log.steps(QUESTION, []), log.says(ANSWER, f"{PUMP}\n{QUESTION}")), "unmarked_text"),
        (lambda log: (log.steps(QUESTION, []), log.says(ANSWER, QUESTION)), None),
        (lambda log: (log.steps(QUESTION, []), log.says(ANSWER, [PayloadMessage("system", RULES), ASKED])), None),
        (lambda log: (log.steps(QUESTION, []), log.steps([], RULES), log.says(ANSWER, f"{RULES}\n{QUESTION}")), None),
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


def test_documents_that_a_step_was_given_by_steps_inside_it_are_its_result():
    found = documents(PUMP, FILTER)
    log = WrittenLog()
    log.log.note(EventKind.START, "search", 0, QUESTION, "step")
    log.log.note(EventKind.START, "rank", "search", found, "step")
    log.log.note(EventKind.END, "rank", None, "ranked")
    log.log.note(EventKind.END, "search", None, found)
    log.says(ANSWER, f"{FILTER}\n{PUMP}\n{QUESTION}")

    record = log.ends(ANSWER)

    assert [(context.text, context.rank) for context in record.contexts] == [(FILTER, 1), (PUMP, 0)]
