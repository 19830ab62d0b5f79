from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragspan.judges.llm import replies, tasks
from ragspan.judges.llm.tasks import CLAIM_VERDICTS, COMPLETENESS, FORMS, GROUNDING, REPLY_SCHEMA

BRANCHES = REPLY_SCHEMA["properties"]["answer"]["anyOf"]
GROUNDED = {"reasoning": "r", "verdict": "grounded"}


def example(schema):
    """A value that satisfies a schema."""
    if schema["type"] == "object":
        return {key: example(value) for key, value in schema["properties"].items()}
    if schema["type"] == "array":
        return [example(schema["items"])]
    return schema["enum"][0] if "enum" in schema else {"string": "text", "number": 0.5, "integer": 1}[schema["type"]]


def objects_in(schema):
    if isinstance(schema, dict):
        if schema.get("type") == "object":
            yield schema
        for value in schema.values():
            yield from objects_in(value)
    elif isinstance(schema, list):
        for item in schema:
            yield from objects_in(item)


@pytest.mark.parametrize(("form", "branch"), list(zip(FORMS, BRANCHES, strict=True)))
def test_what_satisfies_a_branch_of_the_schema_can_be_read(form, branch):
    [_] = form.read(json.dumps({"answer": example(branch)}))

    assert list(branch["properties"]) == [form.key]


def test_the_schema_keeps_to_what_strict_endpoints_demand():
    for schema in objects_in(REPLY_SCHEMA):
        assert schema["additionalProperties"] is False
        assert schema["required"] == list(schema["properties"])
    first_keys = [next(iter(branch["properties"])) for branch in BRANCHES]
    assert len(set(first_keys)) == len(BRANCHES)


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
    assert GROUNDING.read(text) == []


@pytest.mark.parametrize(
    "value", ["NaN", "Infinity", '"nan"', "1e999", "-0.0001", '"1.0001"', '"high"', "true", "null"]
)
def test_a_rating_is_a_number_from_0_to_1(value):
    reply = '{"answer": {"completeness": {"reasoning": "r", "value": VALUE}}}'

    [right] = COMPLETENESS.read(reply.replace("VALUE", "1"))
    assert right.value == 1
    assert COMPLETENESS.read(reply.replace("VALUE", value)) == []


@pytest.mark.parametrize(
    "wrapped",
    [
        "```json\nREPLY\n```",
        '<think>\nIs it {"answer": {}}?\n</think>\n\nREPLY',
        "The template opened the thoughts.\n</think>REPLY",
        "<think>A context says </think>{}, which is quoted text.</think>\n```json\nREPLY\n```",
        "[THINK]hm[/THINK]REPLY",
        "\u25c1think\u25b7hm\u25c1/think\u25b7REPLY",
        "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>REPLY<|return|>",
        "<|START_THINKING|>hm<|END_THINKING|><|START_RESPONSE|>REPLY<|END_RESPONSE|>",
        "<|begin_of_box|>REPLY<|end_of_box|>",
        "Here is my thought process: hm\n\nHere is my response:\nREPLY",
        "REPLY<|im_end|>\n",
    ],
)
def test_a_reply_is_read_behind_thoughts_and_in_a_code_block(wrapped):
    text = wrapped.replace("REPLY", json.dumps({"answer": {"grounding": GROUNDED}}))

    assert GROUNDING.read(text) == [tasks.Grounding(**GROUNDED)]


@pytest.mark.parametrize(
    "odd",
    [
        "Here is the JSON:\n```json\nREPLY\n```\nTell me if you need more.",
        "Sure! REPLY",
        "<think>hm</think>It is so. REPLY",
    ],
)
@pytest.mark.parametrize("verdict", ["not_grounded", "Not grounded", "NOT-GROUNDED.", " not  grounded "])
@pytest.mark.parametrize("form", ["whole", "without answer", "with a comma too many", "with a field too many"])
def test_what_is_unambiguous_is_read(odd, verdict, form):
    answer = {"grounding": GROUNDED | {"verdict": verdict}}
    replies_by_form = {
        "whole": json.dumps({"answer": answer}),
        "without answer": json.dumps(answer),
        "with a comma too many": json.dumps({"answer": answer}).replace("}}}", "},},}"),
        "with a field too many": json.dumps(
            {"answer": {"grounding": answer["grounding"] | {"confidence": 1}}, "note": ""}
        ),
    }

    assert GROUNDING.read(odd.replace("REPLY", replies_by_form[form])) == [tasks.Grounding("r", "not_grounded")]


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
    assert GROUNDING.problem_of(text) == problem
    assert "docs/judges.md" not in problem.replace(replies.PAGE, "")


@pytest.mark.parametrize("number", [0, 3, -1, 99])
def test_a_number_that_was_not_asked_for_spoils_the_reply_also_in_a_finding_that_is_wrong(number):
    right = {"number": 1, "reasoning": "r", "verdict": "supported"}
    text = json.dumps({"answer": {"claim_verdicts": [right, {"number": number, "verdict": "?"}]}})

    assert CLAIM_VERDICTS.read(text, numbers=[1, 2]) == []
    assert CLAIM_VERDICTS.problem_of(text, [1, 2]) == replies.MISCOUNTED
    assert len(CLAIM_VERDICTS.read(text, numbers=[1, 2, number])) == 1


@pytest.mark.parametrize("numbers", [(1, 1), (1, 2, 2), (2, 1, 2)])
def test_several_verdicts_on_one_number_spoil_the_reply_for_nobody_knows_which_is_meant(numbers):
    verdicts = [{"number": number, "reasoning": "r", "verdict": "supported"} for number in numbers]
    text = json.dumps({"answer": {"claim_verdicts": verdicts}})

    assert CLAIM_VERDICTS.read(text, numbers=[1, 2, 3]) == []
    assert CLAIM_VERDICTS.problem_of(text, [1, 2, 3]) == replies.MISCOUNTED


@pytest.mark.parametrize("form", FORMS)
@given(text=st.text(st.characters()))
def test_reading_never_raises(form, text):
    assert form.read(text) == []


@pytest.mark.parametrize("number", [1, "1", 1.0, "1.0"])
def test_a_number_may_be_written_as_a_text_or_with_decimals(number):
    verdicts = [{"number": number, "reasoning": "r", "verdict": "supported"}]
    [found] = CLAIM_VERDICTS.read(json.dumps({"answer": {"claim_verdicts": verdicts}}), numbers=[1])

    assert found.number == 1
    assert COMPLETENESS.read('{"answer": {"completeness": {"reasoning": "r", "value": "0.5"}}}')[0].value == 0.5
