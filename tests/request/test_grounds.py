"""What an answer is judged against: a judge that knows words alone finds true what the prompt held, and nothing else.

Each program gives one answer. The judge supports it if its words stand in one of the texts that it gets.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from ground_programs import ASKED, FACT, RULES, Program, answers, by_hand, record_of, supports, tool
from written_logs import FILTER, HOSE, PUMP, QUESTION, WrittenLog, documents

from ragspan.request.contents import MESSAGE, Call, Document, PayloadMessage

LONG = f"{PUMP} Its housing is made of cast iron and painted blue in the works at Graz. {FACT}"


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


def kept_from_an_earlier_turn(role: str) -> Program:
    def program(log: WrittenLog, fact: str) -> None:
        log.steps({"messages": [MESSAGE, MESSAGE], "found": documents(fact)}, {})
        log.searches(PUMP)
        history = (PayloadMessage("human", "What?"), PayloadMessage(role, f"Use: {fact}"), PayloadMessage("ai", "So."))
        answers(log, fact, *history, PayloadMessage("human", f"{QUESTION}\n{PUMP}"))

    return program


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


def metadata_below_a_written_conversation(log: WrittenLog, fact: str) -> None:
    talk, given = "Human: Hello!\nAI: Hello, what is it about?", f"{PUMP}\nAbout: {fact}"
    log.searches(PUMP)
    text = f"{RULES}\n\nHistory:\n{talk}\n\nContext:\n{given}\n\nQuestion: {QUESTION}"
    values = {"chat_history": talk, "context": given, "question": QUESTION}
    answers(log, fact, *log.fills(values, PayloadMessage("human", text)))


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
    "memories in a message of their own": lambda log, fact: (
        log.searches(PUMP),
        answers(log, fact, PayloadMessage("system", f"<memory>\n{fact}\n</memory>"), PayloadMessage("human", PUMP)),
    ),
    "what a step found, by the name of a query": lambda log, fact: (
        log.steps({}, {"query_result": fact}),
        log.searches(PUMP),
        answers(log, fact, PayloadMessage("system", f"Row: {fact}"), PayloadMessage("human", PUMP)),
    ),
    "a tool's text": tool(str),
    "a tool's JSON": tool(lambda fact: json.dumps([{"url": "a.example", "content": f'{fact} "Größe"'}])),
    "a tool's object": tool(lambda fact: json.dumps({"content": f'{fact} "Größe"'})),
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
    "a document of an earlier turn": kept_from_an_earlier_turn("human"),
    "a document of an earlier turn, by a tool": kept_from_an_earlier_turn("tool"),
    "a tool's text that a model had guessed": lambda log, fact: (log.says(fact, QUESTION), tool(str)(log, fact)),
    "a window around a sentence": beside("window", shown=lambda fact: f"Before it. {PUMP} {fact}"),
    "a parent of a chunk": beside("parent", shown=lambda fact: f"# Manual\n{fact}\n{PUMP}\nThe end of the page."),
    "an answer beside a question": beside("answer", shown=lambda fact: f"{fact} It is there."),
    "a summary of a document": a_summary(lambda fact: f"Human: Price?\nTool: {fact}\nAI: So."),
    "a summary of tagged messages": a_summary(
        lambda fact: f'<message type="human">Price?</message>\n<message type="tool">{fact}</message>'
    ),
    "an agent as a tool": an_agent_as_a_tool,
    "metadata below a written conversation": metadata_below_a_written_conversation,
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
