"""What is told of the calls of models."""

from __future__ import annotations

import pytest
from li_programs import QUESTION, engine
from llama_index.core import Settings
from llama_index.core.base.llms.types import CompletionResponse
from llama_index.core.llms import CustomLLM, LLMMetadata


class OnlySynchronous(CustomLLM):
    """Leaves its asynchronous methods to the framework, which works through the others."""

    output: list = []

    @property
    def metadata(self):
        return LLMMetadata(model_name="plain")

    def complete(self, prompt, formatted=False, **_):
        raw = {"usage": {"prompt_tokens": 7, "completion_tokens": 2}, "output": self.output}
        return CompletionResponse(text="Four strings.", raw=raw)

    def stream_complete(self, prompt, formatted=False, **_):
        def tokens():
            yield CompletionResponse(text="Four ", delta="Four ")
            yield CompletionResponse(text="Four strings.", delta="strings.")

        return tokens()


@pytest.mark.parametrize(("output", "why"), [([], None), ([{"type": "web_search_call"}], "provider_search")])
def test_a_calls_tokens_and_searches_are_read_from_what_the_provider_sent(captured, output, why):
    Settings.llm = OnlySynchronous(output=output)
    engine().query(QUESTION)

    record = captured.record()
    (call,) = record.generations
    assert (call.input_tokens, call.output_tokens, record.contexts_unknown) == (7, 2, why)
