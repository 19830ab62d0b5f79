"""Models of LlamaIndex as the client of an LLM judge."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from li_model import ScriptedModel
from li_programs import ANSWER, QUESTION, engine
from llama_index.core import Settings
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, LLMMetadata, MessageRole
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.callbacks import llm_chat_callback

from ragspan import ConfigurationError, RagRecord, ScoringEngine
from ragspan.judges import LLMJudge
from ragspan.judges.llm.parts import PARTS, schema_of
from ragspan.metrics import ContextAdherence
from ragspan.testing import RecordingEmitter
from ragspan.usage import Usage
from ragspan_llama_index import LlamaIndexChatClient, RagspanCallbackHandler

VOTE = {"reasoning": "stated", "verdict": "grounded"}
GROUNDED = json.dumps({"answer": {"grounding": VOTE}})
PROMPT = [
    {"role": "system", "content": "Judge what stands between the marks."},
    {"role": "user", "content": "Reply in JSON about the cello and its strings."},
]
RECORD = RagRecord(question="When?", contexts=["Beta settles at night."], response="At night.")


class ChatModel(CustomLLM):
    """Replies what `answer` returns for each request: a text, or a response with what the provider told."""

    answer: Callable[[ChatModel, Any, dict[str, Any]], str | ChatResponse]
    temperature: float = 0.1
    api_key: str | None = None
    system_role: MessageRole = MessageRole.SYSTEM

    @property
    def metadata(self):
        return LLMMetadata(is_chat_model=True, system_role=self.system_role)

    @llm_chat_callback()
    def chat(self, messages, **kwargs):
        reply = self.answer(self, messages, kwargs)
        return reply if isinstance(reply, ChatResponse) else ChatResponse(message=ChatMessage(reply, role="assistant"))

    def complete(self, prompt, formatted=False, **kwargs):
        raise AssertionError("the model knows chat")

    stream_complete = complete


SCHEMA = schema_of([PARTS["grounding"]])


async def complete(client, n=1, temperature=0.0):
    return await client.complete(PROMPT, schema=SCHEMA, n=n, temperature=temperature)


# What a request holds


async def test_each_vote_is_a_request_with_a_schema_at_the_judges_temperature():
    asked = []

    def answer(llm, messages, parameters):
        asked.append((llm.temperature, [message.role.value for message in messages], parameters))
        return GROUNDED

    llm = ChatModel(answer=answer)
    votes = await LLMJudge(LlamaIndexChatClient(llm), name="mine").vote_adherence(RECORD, 3)

    json_schema = {"name": "answer", "strict": True, "schema": SCHEMA}
    response_format = {"type": "json_schema", "json_schema": json_schema}
    assert [vote.grounded for vote in votes] == [True] * 3
    assert asked == [(0.7, ["system", "user"], {"response_format": response_format})] * 3
    assert llm.temperature == 0.1


def test_what_is_no_model_is_an_error():
    with pytest.raises(ConfigurationError, match=r"^llm is .*, but should be a model of LlamaIndex$"):
        LlamaIndexChatClient("gpt-4o-mini")


# Kept apart from the application


def test_an_engine_scores_an_answer_with_the_model_that_wrote_it_and_records_no_judging():
    Settings.llm = ScriptedModel().says(lambda prompt: GROUNDED if "<<<" in prompt else ANSWER)
    emitter = RecordingEmitter()
    judge = LLMJudge(LlamaIndexChatClient(Settings.llm), name="mine")
    scoring = ScoringEngine(metrics=[ContextAdherence(judge, polls=3)], emitters=[emitter])
    handler = RagspanCallbackHandler(sink=scoring)
    try:
        engine().query(QUESTION)
        assert scoring.flush(timeout=30)
    finally:
        handler.detach()
        scoring.shutdown(timeout=30)

    [scored] = emitter.scored
    assert scored.record.response == ANSWER
    assert scored.outcomes["context_adherence"].value == 1.0
    assert scored.outcomes["context_adherence"].usage == Usage(requests=3)
    assert scoring.stats().submitted == 1
    assert handler.open_spans == 0
