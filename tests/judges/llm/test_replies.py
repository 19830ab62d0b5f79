from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragspan.judges.llm import replies
from ragspan.judges.llm.parts import PARTS, Grounding, schema_of
from ragspan.judges.llm.replies import read

GROUNDING, COMPLETENESS, CLAIM_VERDICTS = (PARTS[key] for key in ("grounding", "completeness", "claim_verdicts"))
GROUNDED = {"reasoning": "r", "verdict": "grounded"}
WRAPPED = json.loads(Path(__file__).with_name("wrapped.json").read_text("utf-8"))
"""What models write around a REPLY."""


def example(schema):
    """A value that satisfies a schema."""
    if schema["type"] == "object":
        return {key: example(value) for key, value in schema["properties"].items()}
    if schema["type"] == "array":
        return [example(schema["items"])]
    kinds = {"string": "text", "number": 0.5, "integer": 1, "boolean": False}
    return schema["enum"][0] if "enum" in schema else kinds[schema["type"]]


def objects_in(schema):
    if isinstance(schema, dict):
        if schema.get("type") == "object":
            yield schema
        for value in schema.values():
            yield from objects_in(value)
    elif isinstance(schema, list):
        for item in schema:
            yield from objects_in(item)


def test_what_satisfies_the_schema_can_be_read():
    text = json.dumps(example(schema_of(PARTS.values())))

    assert [len(read(part, text)[0]) for part in PARTS.values()] == [1] * len(PARTS)


@pytest.mark.parametrize(("parts", "may_choose"), [(["grounding"], False), (["grounding", "completeness"], True)])
def test_of_several_questions_a_reply_may_answer_any_one(parts, may_choose):
    answer = schema_of([PARTS[name] for name in parts], together=False)["properties"]["answer"]

    assert ("anyOf" in answer) is may_choose


@pytest.mark.parametrize("together", [True, False])
def test_the_schema_keeps_to_what_strict_endpoints_demand(together):
    for schema in objects_in(schema_of(PARTS.values(), together=together)):
        assert schema["additionalProperties"] is False
        assert schema["required"] == list(schema["properties"])


@pytest.mark.parametrize(
    "text",
    [
        "grounded",
        json.dumps({"answer": GROUNDED}),
        json.dumps({"answer": {"grounding": {"verdict": "grounded"}}}),
        json.dumps({"answer": {"grounding": GROUNDED}}) * 2,
        "<think>" + json.dumps({"answer": {"grounding": GROUNDED}}),
        "<" * 50_000,
        json.dumps({"answer": {"grounding": GROUNDED}})[:-1],
    ],
)
def test_what_does_not_satisfy_the_schema_is_no_reply(text):
    assert read(GROUNDING, text)[0] == []


@pytest.mark.parametrize(
    "value", ["NaN", "Infinity", '"nan"', "1e999", "-0.0001", '"1.0001"', '"high"', "true", "null"]
)
def test_a_rating_is_a_number_from_0_to_1(value):
    reply = '{"answer": {"completeness": {"reasoning": "r", "value": VALUE}}}'

    [right], _ = read(COMPLETENESS, reply.replace("VALUE", "1"))
    assert right.value == 1
    assert read(COMPLETENESS, reply.replace("VALUE", value))[0] == []


@pytest.mark.parametrize("wrapped", WRAPPED)
@pytest.mark.parametrize("form", ["whole", "without answer", "with a comma too many", "with a field too many"])
def test_what_is_unambiguous_is_read(wrapped, form):
    answer = {"grounding": GROUNDED}
    text = {
        "whole": json.dumps({"answer": answer}),
        "without answer": json.dumps(answer),
        "with a comma too many": json.dumps({"answer": answer}).replace("}}}", "},},}"),
        "with a field too many": json.dumps({"answer": {"grounding": GROUNDED | {"confidence": 1}}, "note": ""}),
    }[form]

    assert read(GROUNDING, wrapped.replace("REPLY", text)) == ([Grounding(**GROUNDED)], None)


@pytest.mark.parametrize("verdict", ["not_grounded", "Not grounded", "NOT-GROUNDED.", " not  grounded "])
def test_a_verdict_may_be_spelt_in_another_way(verdict):
    text = json.dumps({"answer": {"grounding": {"reasoning": "r", "verdict": verdict}}})

    assert read(GROUNDING, text)[0] == [Grounding("r", "not_grounded")]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("I'm sorry, but I can't help with that.", replies.REFUSED_IN_WORDS),
        ("I cannot assist with this request.", replies.REFUSED_IN_WORDS),
        ("The response is grounded, because the contexts say so.", replies.PROSE),
        ('{"answer": {"verdict": "grounded"}}', replies.OTHER_JSON),
    ],
)
def test_what_a_reply_without_an_answer_is_is_said_in_words_with_a_page_to_open(text, problem):
    assert read(GROUNDING, text) == ([], problem)
    assert "docs/judges.md" not in problem.replace(replies.PAGE, "")


@pytest.mark.parametrize("numbers", [(1, 1), (1, 2, 2), (1, 0), (1, 99)])
def test_a_number_that_was_not_asked_for_or_comes_twice_spoils_the_reply(numbers):
    verdicts = [{"number": number, "reasoning": "r", "verdict": "supported"} for number in numbers]
    text = json.dumps({"answer": {"claim_verdicts": verdicts}})

    assert read(CLAIM_VERDICTS, text, [1, 2, 3]) == ([], replies.MISCOUNTED)


@given(text=st.text(st.characters()))
def test_reading_never_raises(text):
    assert [read(part, text)[0] for part in PARTS.values()] == [[]] * len(PARTS)


@pytest.mark.parametrize("number", [1, "1", 1.0, "1.0"])
def test_a_number_may_be_written_as_a_text_or_with_decimals(number):
    verdicts = [{"number": number, "reasoning": "r", "verdict": "supported"}]
    [found], _ = read(CLAIM_VERDICTS, json.dumps({"answer": {"claim_verdicts": verdicts}}), [1])

    assert found.number == 1
