"""What is read out of providers' replies, whatever form these have."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ragspan.provider_replies import ReplyFacts, facts_of

FACTS = ReplyFacts(
    response_model="m-1", finish_reason="stop", input_tokens=7, output_tokens=2, cached_tokens=None, response_id=None
)
USAGE = {"prompt_tokens": 7, "completion_tokens": 2}
CHOICE = {"finish_reason": "stop"}


@pytest.mark.parametrize(
    "parts",
    [
        [{"model": "m-1", "choices": [CHOICE], "usage": USAGE}],
        [{"model": "m-1", "stop_reason": "stop", "usage": {"input_tokens": 7, "output_tokens": 2}}],
        [{"model_name": "m-1", **CHOICE}, {"token_usage": USAGE}],
        [SimpleNamespace(model="m-1", choices=[SimpleNamespace(**CHOICE)], usage=SimpleNamespace(**USAGE))],
        [{"model": "m-1", "done_reason": "stop", "prompt_eval_count": 7, "eval_count": 2}, None],
    ],
    ids=["OpenAI", "Anthropic", "LangChain", "objects", "Ollama"],
)
def test_the_facts_of_a_reply(parts):
    assert facts_of(parts) == FACTS
