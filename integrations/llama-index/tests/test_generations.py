"""What is told of the calls of models."""

from __future__ import annotations

from li_programs import QUESTION, engine
from llama_index.core import Settings
from llama_index.core.base.llms.types import CompletionResponse
from llama_index.core.llms import CustomLLM, LLMMetadata


class OnlySynchronous(CustomLLM):
    """Leaves its asynchronous methods to the framework, which works through the others."""

    @property
    def metadata(self):
        return LLMMetadata(model_name="plain")

    def complete(self, prompt, formatted=False, **_):
        return CompletionResponse(text="Four strings.", raw={"usage": {"prompt_tokens": 7, "completion_tokens": 2}})

    def stream_complete(self, prompt, formatted=False, **_):
        def tokens():
            yield CompletionResponse(text="Four ", delta="Four ")
            yield CompletionResponse(text="Four strings.", delta="strings.")

        return tokens()


def test_a_calls_tokens_are_read_from_what_the_provider_sent(captured):
    Settings.llm = OnlySynchronous()
    engine().query(QUESTION)

    (call,) = captured.record().generations
    assert (call.input_tokens, call.output_tokens) == (7, 2)
