"""Each provider refuses one parameter after the other, in its own words: what it refuses is left out, and what it takes is kept."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from ragspan.judges.presets import PRESETS
from ragspan.metrics import ContextAdherence

GROUNDED = json.dumps({"answer": {"grounding": {"reasoning": "stated", "verdict": "grounded"}}})
REFUSABLE = ("n", "temperature", "response_format", "seed", "logprobs", "max_tokens")
SENT = {"seed": 7, "logprobs": True, "max_tokens": 900}
CAMEL = {
    "n": "candidateCount",
    "temperature": "temperature",
    "response_format": "responseSchema",
    "seed": "seed",
    "logprobs": "responseLogprobs",
    "max_tokens": "maxOutputTokens",
}


REFUSALS = json.loads(Path(__file__).with_name("refusals.json").read_text("utf-8"))
"""By provider: the status and the words with which it refuses the parameter NAME."""


def test_every_provider_with_a_name_is_here():
    assert set(PRESETS) <= set(REFUSALS)


@pytest.mark.parametrize(("name", "refusal"), REFUSALS.items(), ids=REFUSALS)
async def test_what_a_provider_refuses_is_left_out_one_after_the_other(
    name, refusal, fake_openai, openai_judge, super_bowl
):
    def answer(request):
        refused = next((one for one in REFUSABLE if one in request), None)
        if refused is not None:
            return json.loads(json.dumps(refusal).replace("NAME", CAMEL[refused] if name == "xai" else refused))
        return fake_openai.says(*[GROUNDED] * request.get("n", 1))

    fake_openai.answer = answer
    judge = openai_judge(extra_body=SENT)

    assert (await ContextAdherence(judge).score(super_bowl)).value == 1.0
    asked = len(fake_openai.requests)
    assert (await ContextAdherence(judge).score(replace(super_bowl))).value == 1.0
    assert len(fake_openai.requests) == asked + 3, "nothing is refused twice"
    assert set(fake_openai.requests[-1]) == {"model", "messages"}
