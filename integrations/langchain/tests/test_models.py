"""How models give their answers."""

from __future__ import annotations

from captures import Answered
from langchain_core.caches import InMemoryCache
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import (
    JsonOutputParser,
)
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnablePassthrough
from rag_programs import (
    ANSWER,
    FOUND,
    PROMPT,
    QUESTION,
    StreamingModel,
    chat_model,
    join_texts,
    rag_chain,
    retriever,
)

COMPLETE = Answered(QUESTION, FOUND, ANSWER)
PREPARED = {"context": retriever() | join_texts, "question": RunnablePassthrough()}


def test_the_first_of_several_choices(captured):
    class GenerousModel(GenericFakeChatModel):
        def _generate(self, messages, stop=None, run_manager=None, **kwargs):
            choices = [ChatGeneration(message=AIMessage(text)) for text in (ANSWER, "Two years.", "Ten years.")]
            return ChatResult(generations=choices)

    rag_chain(model=GenerousModel(messages=iter(()))).invoke(QUESTION, captured.config)

    assert captured.answers() == [COMPLETE]


def test_an_answer_from_the_cache(captured):
    model = chat_model()
    model.cache = InMemoryCache()
    for _ in range(2):
        rag_chain(model=model).invoke(QUESTION, captured.config)

    assert captured.answers() == [COMPLETE, COMPLETE]


def test_a_model_that_streams_although_it_is_invoked(captured):
    """Some models send tokens to the callbacks even then; the caller still gets the whole."""

    class EagerModel(StreamingModel):
        def _generate(self, messages, stop=None, run_manager=None, **kwargs):
            text = "".join(chunk.text for chunk in self._stream(messages, stop, run_manager, **kwargs))
            return ChatResult(generations=[ChatGeneration(message=AIMessage(text))])

    rag_chain(model=EagerModel(tokens=["It runs ", "for three ", "years."])).invoke(QUESTION, captured.config)

    assert captured.answers() == [COMPLETE]


def test_a_model_with_bound_arguments(captured):
    rag_chain(model=chat_model().bind(stop=["\n"])).invoke(QUESTION, captured.config)

    assert captured.answers() == [COMPLETE]


def test_what_the_model_says_of_itself_goes_with_the_answer(captured):
    usage = {"input_tokens": 40, "output_tokens": 6, "total_tokens": 46}
    message = AIMessage(ANSWER, usage_metadata=usage, response_metadata={"model_name": "m-1", "finish_reason": "stop"})
    rag_chain(model=chat_model(message)).invoke(QUESTION, captured.config)

    (generation,) = captured.record().generations
    assert (generation.model, generation.finish_reason) == ("m-1", "stop")
    assert (generation.input_tokens, generation.output_tokens) == (40, 6)


def test_the_time_of_the_first_token(captured):
    list(rag_chain().stream(QUESTION, captured.config))

    (generation,) = captured.record().generations
    assert generation.started_ns <= generation.first_token_ns <= generation.ended_ns


def test_a_partial_object_of_a_stream_that_is_closed(captured):
    """The reader got objects; what the model had said until then is the nearest text."""
    model = StreamingModel(tokens=['{"answer": ', '"It runs ', 'for three years."', "}"])
    chunks = (PREPARED | PROMPT | model | JsonOutputParser()).stream(QUESTION, captured.config)
    for chunk in chunks:
        if chunk == {"answer": "It runs"}:
            break
    chunks.close()

    answer = captured.answer()
    assert (answer.question, answer.contexts, answer.status) == (QUESTION, FOUND, "aborted")
    assert "It runs" in answer.response
    assert "years" not in answer.response
