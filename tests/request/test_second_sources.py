"""Evidence beside found documents: values of templates and states, metadata shown alone, short documents, primed messages."""

import json

import pytest
from written_logs import ANSWER, FILTER, PUMP, QUESTION, WrittenLog

from ragspan.request.contents import Document, PayloadMessage

ORDER = "Order K-2214 was shipped with the carrier Borealis on the fourth of March."
RULES = "Answer in two sentences and never guess a number."


def test_a_field_of_the_callers_that_fills_a_template_is_background_beside_documents():
    log = WrittenLog(
        {"question": QUESTION, "order": ORDER, "persona": "You are the calm and friendly voice of the works."}
    )
    log.searches(PUMP)
    given = {"context": PUMP, "question": QUESTION, "order": ORDER}
    prompt = log.fills(given, PayloadMessage("system", f"{RULES}\n{ORDER}\n{PUMP}"), PayloadMessage("human", QUESTION))
    log.says(ANSWER, prompt)

    record = log.ends(ANSWER)

    assert [context.text for context in record.contexts] == [PUMP]
    assert [(one.kind, one.text.rstrip(".")) for one in record.background] == [("other", ORDER.rstrip("."))]


def test_rows_that_a_step_gave_out_are_background_as_a_template_writes_them():
    rows = [{"order": "K-2214", "note": "It was shipped with the carrier Borealis.", "parts": 12}]
    log = WrittenLog({"question": QUESTION})
    log.searches(PUMP)
    log.steps(QUESTION, rows)
    given = {"context": PUMP, "question": QUESTION, "rows": rows}
    log.says(ANSWER, log.fills(given, PayloadMessage("system", f"{RULES}\n{rows}\n{PUMP}\n{QUESTION}")))

    assert [(one.kind, "K-2214" in one.text, "12" in one.text) for one in log.ends(ANSWER).background] == [
        ("other", True, True)
    ]


@pytest.mark.parametrize("response", [ANSWER, ORDER], ids=["another response", "a response that repeats it"])
def test_a_text_that_a_node_wrote_is_background_in_a_system_message_of_its_own(response):
    log = WrittenLog({"question": QUESTION})
    log.searches(PUMP)
    log.steps({"question": QUESTION}, {"order": ORDER})
    log.says(response, [PayloadMessage("system", f"{RULES}\n{ORDER}"), PayloadMessage("human", f"{PUMP}\n{QUESTION}")])

    assert [one.text for one in log.ends(response).background] == [ORDER]


@pytest.mark.parametrize(
    "show", [json.dumps, str, lambda row: " | ".join(map(str, row.values()))], ids=["JSON", "Python", "table"]
)
def test_short_values_of_a_row_are_background_where_they_stand_together_but_not_a_models_own(show):
    row, chosen = {"id": 4711, "state": "shipped", "carrier": "DHL"}, {"route": "manual", "topic": "pumps"}
    log = WrittenLog({"question": QUESTION})
    log.searches(PUMP)
    log.steps({"question": QUESTION}, {"order": row})
    log.says(json.dumps(chosen), "Choose a route.")
    log.steps(json.dumps(chosen), chosen)
    system = f"{RULES} {show(row)}\nAnswer from the manual of the pumps."
    log.says(ANSWER, [PayloadMessage("system", system), PayloadMessage("human", f"{PUMP}\n{QUESTION}")])

    assert [one.text.strip("{}")[-5:].strip("\"'| ") for one in log.ends(ANSWER).background] == ["DHL"]


def test_a_prompt_that_a_step_wrote_is_no_data():
    log = WrittenLog({"question": QUESTION})
    log.searches(PUMP)
    log.steps({"question": QUESTION}, RULES)
    log.says(ANSWER, [PayloadMessage("system", RULES), PayloadMessage("human", f"{PUMP}\n{QUESTION}")])

    assert log.ends(ANSWER).background == ()


def test_values_of_the_metadata_that_stand_together_are_the_contexts_text():
    log = WrittenLog()
    documents = [
        Document("lamp for reading", "1", {"name": "Aurora", "price": "49 euros"}),
        Document("lamp for the floor", "2", {"name": "Borealis", "price": "89 euros"}),
    ]
    log.steps(QUESTION, documents)
    greeting = (PayloadMessage("human", "Hello!"), PayloadMessage("ai", "Good day."))
    log.says(ANSWER, [*greeting, PayloadMessage("human", f"Aurora: 49 euros\nBorealis: 89 euros\n{QUESTION}")])

    record = log.ends(ANSWER)

    assert [(context.id, context.text) for context in record.contexts] == [
        ("1", "Aurora: 49 euros"),
        ("2", "Borealis: 89 euros"),
    ]


def test_short_documents_are_found_with_other_marks_between_their_words():
    log = WrittenLog()
    log.steps(QUESTION, [Document("Cem -> born_in -> 1984", "1", {}), Document("Ada -> knows -> Bo", "2", {})])
    log.says(ANSWER, f"(Ada)-[:knows]->(Bo)\n(Cem)-[:born_in]->(1984)\n{QUESTION}")

    assert [context.id for context in log.ends(ANSWER).contexts] == ["2", "1"]


def test_documents_in_an_assistants_message_that_no_model_said_are_contexts():
    log = WrittenLog()
    log.searches(PUMP, FILTER)
    primed = [PayloadMessage("human", "What do your notes say?"), PayloadMessage("ai", f"{PUMP}\n\n{FILTER}")]
    log.says(ANSWER, [*primed, PayloadMessage("human", QUESTION)])

    assert [context.text for context in log.ends(ANSWER).contexts] == [PUMP, FILTER]


@pytest.mark.parametrize(
    ("role", "shown"),
    [("system", "Summary: {}"), ("human", "Here is a summary of the conversation to date:\n\n{}")],
    ids=["in a field that is called so", "as LangChain's middleware begins it"],
)
def test_beside_a_summary_of_an_earlier_turn_there_is_more_evidence_than_the_record_has(role, shown):
    log = WrittenLog({"question": QUESTION})
    summary = "They spoke of the paid leave, which is twenty-six days in Lisbon."
    if role == "system":
        log.steps({"summary": summary}, {})
    log.searches(PUMP)
    log.says(ANSWER, [PayloadMessage(role, shown.format(summary)), PayloadMessage("human", f"{PUMP}\n{QUESTION}")])

    assert log.ends(ANSWER).background_truncated
