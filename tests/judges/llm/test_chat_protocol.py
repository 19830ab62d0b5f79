from __future__ import annotations

import pytest

from ragspan.exceptions import JudgeError
from ragspan.judges.llm.replies import BROKEN_OFF, EMPTY, REFUSED, THOUGHTS_ONLY, read_completions
from ragspan.usage import Usage


def chat(*texts, usage=None):
    return {"choices": [{"message": {"content": text}, "finish_reason": "stop"} for text in texts], "usage": usage}


def test_a_choice_holds_the_models_text_and_the_first_one_the_usage():
    completions = read_completions(chat("a", "b", usage={"prompt_tokens": 3, "completion_tokens": 2}))

    assert [(one.text, one.usage) for one in completions] == [
        ("a", Usage(requests=1, input_tokens=3, output_tokens=2)),
        ("b", Usage()),
    ]


@pytest.mark.parametrize(
    ("about", "problem"),
    [
        ({"finish_reason": "error", "error": {"code": 502, "message": "upstream"}}, BROKEN_OFF),
        ({"error": {"code": 502, "message": "upstream"}}, BROKEN_OFF),
        ({"message": {"content": None, "refusal": "I cannot."}}, REFUSED),
        ({"message": {"content": None, "reasoning_content": "It is grounded."}}, THOUGHTS_ONLY),
        ({"message": {"content": None}}, EMPTY),
    ],
)
def test_a_choice_without_a_reply_says_why(about, problem):
    [completion] = read_completions({"choices": [{"message": {"content": "a"}, **about}]})

    assert (completion.text, completion.problem) == ("", problem)


FILTERED = {"promptFeedback": {"blockReason": "SAFETY"}, "usage": {"prompt_tokens": 9}}


@pytest.mark.parametrize(("reply", "outage"), [({}, True), (FILTERED, False)])
def test_a_reply_without_choices_is_an_outage_unless_a_filter_took_the_prompt(reply, outage):
    with pytest.raises(JudgeError) as failure:
        read_completions(reply)

    usage = failure.value.usage
    assert (failure.value.outage, usage and usage.input_tokens) == (outage, None if outage else 9)


@pytest.mark.parametrize(
    ("usage", "usd"),
    [
        (
            {"prompt_tokens": 9, "cost": 0.00014, "cost_details": {"upstream_inference_cost": None}},
            0.00014,
        ),
        ({"cost": {"input_tokens_cost": 0.1, "total_cost": 0.3}}, 0.3),
    ],
)
def test_what_a_provider_says_that_it_charges_is_the_cost(usage, usd):
    [completion] = read_completions(chat("a", usage=usage))

    assert completion.usage.usd == (None if usd is None else pytest.approx(usd))


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ([{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}, {"type": "text", "text": "a"}], "a"),
        ([{"type": "output_text", "text": "a", "annotations": []}], "a"),
        (["a", "b"], "ab"),
    ],
)
def test_content_may_be_in_parts(content, text):
    [completion] = read_completions({"choices": [{"message": {"content": content}}]})

    assert completion.text == text
