"""Which of the things that a caller got is the answer, in the shape of well-known programs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from written_logs import ANSWER, FILTER, MOTOR, PUMP, QUESTION, WrittenLog, calls, documents

from ragspan.request.contents import PayloadMessage
from ragspan.safe_copy import CUT, ObjectFields

REPORT = "All in all the pump is covered for three full years."
OBJECT = {"years": 3, "reason": "It says so on page one."}
CITED = {"answer": ANSWER, "citations": [0]}
PLAN = {
    "input": QUESTION,
    "plan": ["Find it.", "Read it."],
    "past_steps": [["Find it.", "The step found three years."]],
}
PLANNED = ["Find it.\nRead it.", "The step found three years."]
SUMMARY = f"## Summary\n{REPORT}\n\n### Sources:\n* a page : b.example"
RESEARCH = {
    "research_topic": QUESTION,
    "search_query": "pump warranty years",
    "web_research_results": ["Source: a page"],
    "sources_gathered": ["* a page : b.example"],
    "research_loop_count": 1,
}
QUERY = '{"query": "pump warranty years", "rationale": "asked"}'
ASKED = PayloadMessage("human", QUESTION)
GUARD = "I must not talk about this."


def talk(*messages: PayloadMessage, **fields: Any) -> dict[str, Any]:
    """The state of a conversation that begins with the question, and other fields."""
    return {"messages": [ASKED, *messages], **fields}


def nested(depth: int) -> Any:
    return {"years": 3} if depth == 0 else {"part": [nested(depth - 1)]}


# What models said, one after the other; what the caller got; and the response, a text or an object in JSON.
RESPONSES: dict[str, tuple[list[str | PayloadMessage], Any, Any]] = {
    # Steps and a final field
    "a plan, replanned in words": ([*PLANNED, REPORT], PLAN | {"response": REPORT}, REPORT),
    "a plan, replanned in JSON": (
        [*PLANNED, json.dumps({"action": {"response": REPORT}})],
        PLAN | {"response": REPORT},
        REPORT,
    ),
    "a plan, replanned by a call": ([*PLANNED, calls({"response": REPORT})], PLAN | {"response": REPORT}, REPORT),
    "a running summary beside search results": ([QUERY, REPORT], RESEARCH | {"running_summary": SUMMARY}, SUMMARY),
    "a summary without the model's thoughts": (
        [QUERY, f"<think>Which years?</think>{REPORT}"],
        RESEARCH | {"running_summary": SUMMARY},
        SUMMARY,
    ),
    # A conversation and other fields
    "partial answers beside a conversation": (
        ["They spoke about pumps.", "What is the warranty?", "Three years.", REPORT],
        talk(
            PayloadMessage("ai", REPORT),
            conversation_summary="They spoke about pumps.",
            rewritten_questions=["What is the warranty?"],
            agent_answers=[{"index": 0, "question": "q", "answer": "Three years."}],
        ),
        REPORT,
    ),
    "a conversation under another name": ([ANSWER], {"talk": [ASKED, PayloadMessage("ai", ANSWER)]}, ANSWER),
    "a summary for the next turn": (
        [ANSWER, "The user asks about a pump."],
        talk(PayloadMessage("ai", ANSWER), summary="The user asks about a pump."),
        ANSWER,
    ),
    **{
        f"{name} beside a conversation": (
            ["I have looked it up.", REPORT],
            talk(PayloadMessage("ai", "I have looked it up."), **{name: REPORT}),
            REPORT,
        )
        for name in ("answer", "response", "generation", "final_report", "finalAnswer", "final_output")
    },
    **{
        f"{form} under the role of a person": ([REPORT], talk(PayloadMessage("human", text), next="__end__"), text)
        for form, text in (("words", REPORT), ("words with a heading", f"Researcher: {REPORT}"))
    },
    "the user's own last words": (["yes"], talk(next="__end__"), None),
    # Fields
    **{
        f"{name} beside documents": (
            [ANSWER],
            {name: ANSWER, "context": documents(PUMP), "question": QUESTION},
            ANSWER,
        )
        for name in ("answer", "result", "output", "response", "final_answer", "generation", "reply", "antwort")
    },
    **{
        f"one level down in {name}": ([ANSWER], {name: {"answer": ANSWER, "pages": [1]}}, ANSWER)
        for name in ("data", "output", "result")
    },
    **{f"{value} in the answer's field": ([ANSWER], {"answer": value, "n": 1}, value) for value in (True, 3, 2.5)},
    "a text that is made of a model's words, whatever its name": (
        [REPORT],
        {"question": QUESTION, "page": f"<p>{REPORT}</p>", "topic": "warranties of pumps"},
        f"<p>{REPORT}</p>",
    ),
    **{
        f"an answer that was parsed into {form}, beside the message": (
            [calls(CITED)],
            {"raw": calls(CITED), "parsed": parsed, "parsing_error": None},
            CITED,
        )
        for form, parsed in (("fields", CITED), ("an object", ObjectFields(CITED)))
    },
    "an object in the answer's field": ([ANSWER], {"answer": OBJECT}, OBJECT),
    "an object of the program's own class": (
        [ANSWER],
        {"reply": ObjectFields(text=ANSWER, pages=[1])},
        {"text": ANSWER, "pages": [1]},
    ),
    # Objects
    "JSON": ([json.dumps(OBJECT)], OBJECT, OBJECT),
    "fenced JSON": ([f"```json\n{json.dumps(OBJECT, indent=2)}\n```"], OBJECT, OBJECT),
    "an object": ([ANSWER], ObjectFields(text=ANSWER, pages=[1]), {"text": ANSWER, "pages": [1]}),
    **{str(value): ([ANSWER], value, value) for value in (True, 3, 2.5)},
    "a parsed list": (["pump, filter, hose"], ["pump", "filter", "hose"], "pump\nfilter\nhose"),
    "a message that calls a tool": ([calls(CITED)], calls(CITED), CITED),
    "two calls": ([calls(CITED, OBJECT)], calls(CITED, OBJECT), [CITED, OBJECT]),
    "calls without their message": ([calls(CITED)], calls(CITED).calls, [CITED]),
    "a conversation that ends with a call": ([calls(CITED)], {"messages": [calls(CITED)]}, CITED),
    "a call that another model comments on": ([calls(CITED), "Nice."], calls(CITED), CITED),
    **{
        f"a call in {name}": ([calls(CITED)], {name: calls(CITED), "docs": documents(PUMP)}, CITED)
        for name in ("answer", "message", "cited")
    },
    **{
        f"an object {depth} levels deep in {form}": ([json.dumps(nested(depth))], output, response)
        for depth in (2, 4, 10, 20)
        for form, output, response in (
            ("the output", nested(depth), nested(depth)),
            ("a field", {"answer": nested(depth)}, nested(depth)),
            ("a list in a field", {"answer": [nested(depth)]}, [nested(depth)]),
        )
    },
    "what is too large says so": ([ANSWER], {"answer": [CUT, {"row": [5]}]}, ["…", {"row": [5]}]),
    # With other things beside it
    "an answer and its sources": ([ANSWER], [ANSWER, documents(PUMP), ["manual.pdf"], 0.8], ANSWER),
    "an answer with a heading and its sources": ([ANSWER], [f"Answer: {ANSWER}", ["manual.pdf"]], f"Answer: {ANSWER}"),
    "a provider's own form": (
        [ANSWER],
        {"id": "c-1", "choices": [{"index": 0, "message": PayloadMessage("ai", ANSWER)}], "usage": {"total_tokens": 3}},
        ANSWER,
    ),
    "what was parsed, beside the message": (
        [f"I know it now.\nFinal Answer: {REPORT}"],
        talk(PayloadMessage("ai", f"I know it now.\nFinal Answer: {REPORT}"), output=REPORT),
        REPORT,
    ),
    # Not the model's words
    "the program's own words in a field": ([], {"greeting": "Good day!", "seconds": 3}, "Good day!"),
    "two words beside a conversation": ([], talk(verdict="Three years.", next="__end__"), "Three years."),
    "a guard's words": ([ANSWER], GUARD, GUARD),
    "an answer that a judge let pass": ([ANSWER, "yes"], ANSWER, ANSWER),
    "what replaces an answer that it did not": ([ANSWER, "no"], "I cannot say.", "I cannot say."),
    "a title beside the answer": (["A title", ANSWER], {"title": "A title", "text": ANSWER}, ANSWER),
    # On the way to the answer
    "what a model searched with": ([QUESTION, ANSWER], {"wanted": QUESTION, "advice": ANSWER}, ANSWER),
    "what the answer's prompt holds": (["pump", ANSWER], {"category": "pump", "draft": ANSWER}, ANSWER),
    "what a short text judges": ([PUMP, ANSWER], {"essay": PUMP, "note": ANSWER}, {"essay": PUMP, "note": ANSWER}),
}


@pytest.mark.parametrize(("said", "output", "response"), RESPONSES.values(), ids=RESPONSES)
def test_what_the_caller_got_as_the_answer(said, output, response):
    log = WrittenLog({"question": QUESTION})
    log.searches(PUMP, FILTER, MOTOR)
    for reply in said:
        # The answer's prompt holds the documents, and partial answers as well; a title's or a judge's does not.
        log.says(reply, f"{PUMP}\n{QUESTION}" if reply in (ANSWER, REPORT) else "Say something.")

    answer = log.answers(output)

    assert (answer.question, answer.status) == (QUESTION, "complete")
    assert answer.response == response or json.loads(answer.response) == response
