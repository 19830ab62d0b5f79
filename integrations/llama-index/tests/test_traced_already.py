"""Scores of an application that is traced already: on the trace that is there, below the answer's span, drawn once."""

from __future__ import annotations

import asyncio
import gc

import pytest
from captures import Answered
from li_agents import agent
from li_chats import chat_engine
from li_model import calls
from li_programs import (
    ANSWER,
    CELLO,
    HARP,
    QUESTION,
    FixedRetriever,
    answer_of,
    drained,
    engine,
    engine_over,
    engine_tool,
    found,
)
from li_workflows import Answering
from llama_index.core import get_response_synthesizer
from llama_index.core.query_engine import SubQuestionQueryEngine
from llama_index_instrumentation import get_dispatcher
from llama_index_instrumentation.span import SimpleSpan
from llama_index_instrumentation.span_handlers import BaseSpanHandler
from openinference.instrumentation.llama_index import LlamaIndexInstrumentor
from opentelemetry import context
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import set_span_in_context
from pydantic import PrivateAttr
from traced_alike import TracedAlready
from traced_application import SCORE, ids

from ragspan_llama_index import RagspanLlamaIndexInstrumentor

QUERY = "RetrieverQueryEngine.query"
COMPLETE = Answered(QUESTION, [CELLO, HARP], ANSWER)


@pytest.fixture(params=["attached before", "attached after"])
def beside_openinference(request, application, handle):
    """OpenInference traces the application, and a handler was attached before or after it."""
    instrumentor = LlamaIndexInstrumentor()
    if request.param == "attached before":
        handle(application)
    instrumentor.instrument(tracer_provider=application.provider)
    if request.param == "attached after":
        handle(application)
    yield application
    if instrumentor.is_instrumented_by_opentelemetry:
        instrumentor.uninstrument()


@pytest.fixture
def ask(handle):
    attached = []

    def ask_engine(application):
        if application not in attached:
            attached.append(application)
            handle(application)
        engine().query(QUESTION)

    return ask_engine


class TestTracedAlready(TracedAlready):
    """Engines."""

    openinference = LlamaIndexInstrumentor
    root = QUERY
    workflow = "RetrieverQueryEngine"


CALLS = {
    "query": (lambda: engine().query(QUESTION), QUERY),
    "streamed query": (lambda: list(engine(streaming=True).query(QUESTION).response_gen), QUERY),
    "aquery": (lambda: answer_of(engine, QUESTION, "aquery"), "RetrieverQueryEngine.aquery"),
    "streamed aquery": (lambda: answer_of(engine, QUESTION, "streamed aquery"), "RetrieverQueryEngine.aquery"),
}


each_call = pytest.mark.parametrize(("call", "root"), CALLS.values(), ids=CALLS)


# Beside OpenInference: the answer's span is that of the root


@each_call
def test_the_score_of_a_call(beside_openinference, call, root):
    call()

    assert beside_openinference.answers() == [COMPLETE]
    assert beside_openinference.scored_spans() == [root]
    assert beside_openinference.span(root).parent is None


@each_call
def test_the_score_of_a_call_inside_a_request(beside_openinference, call, root):
    with beside_openinference.tracer.start_as_current_span("POST /ask"):
        call()

    assert beside_openinference.scored_spans() == [root]
    request = beside_openinference.span("POST /ask")
    assert beside_openinference.span(root).parent.span_id == request.context.span_id


@pytest.mark.parametrize("mode", ["context", "condense_plus_context", "condense_question"])
def test_the_score_of_a_streamed_chat(beside_openinference, mode):
    response = chat_engine(mode).stream_chat("The cello?")
    assert "".join(response.response_gen) == ANSWER

    assert beside_openinference.answers() == [Answered("The cello?", [CELLO], ANSWER)]
    (root,) = beside_openinference.scored_spans()
    assert root.endswith("ChatEngine.stream_chat")


async def test_the_score_of_a_chat_that_streams_asynchronously(beside_openinference):
    response = await chat_engine("context").astream_chat("The cello?")
    assert await drained(response.async_response_gen()) == ANSWER

    assert beside_openinference.scored_spans() == ["ContextChatEngine.astream_chat"]


@pytest.mark.parametrize("followed", [False, True])
async def test_the_score_of_an_agent(beside_openinference, model, followed):
    model.says(calls("search", input="cello"), ANSWER, "In the end.")
    running = agent(engine_tool("search")).run(user_msg=QUESTION)
    if followed:
        async for _ in running.stream_events():
            pass
    await running

    assert beside_openinference.answers() == [Answered(QUESTION, [CELLO], "In the end.")]
    assert beside_openinference.scored_spans() == ["FunctionAgent.run"]


async def test_the_score_of_a_workflow(beside_openinference):
    await Answering().run(query="The cello?")

    assert beside_openinference.scored_spans() == ["Answering.run"]


async def test_each_of_many_requests_has_its_own(beside_openinference):
    await asyncio.gather(*(engine().aquery(f"{number}?") for number in range(10)))

    assert beside_openinference.scored_spans() == ["RetrieverQueryEngine.aquery"] * 10
    assert len({score.parent.span_id for score in beside_openinference.spans(SCORE)}) == 10


def test_an_engine_of_engines_is_one_answer(beside_openinference, model):
    tools = [engine_tool("strings", "cello"), engine_tool("pedals", "harp")]
    both = SubQuestionQueryEngine.from_defaults(
        tools, question_gen=_two_questions(), response_synthesizer=get_response_synthesizer(), use_async=False
    )
    both.query(QUESTION)

    assert beside_openinference.scored_spans() == ["SubQuestionQueryEngine.query"]


def _two_questions():
    from llama_index.core.question_gen.types import BaseQuestionGenerator, SubQuestion

    class TwoQuestions(BaseQuestionGenerator):
        def generate(self, tools, query):
            return [SubQuestion(sub_question=f"What of {tool.name}?", tool_name=tool.name) for tool in tools]

        async def agenerate(self, tools, query):
            return self.generate(tools, query)

        def _get_prompts(self):
            return {}

        def _update_prompts(self, prompts):
            pass

    return TwoQuestions()


def test_a_stream_that_is_left_belongs_to_its_root(beside_openinference):
    response = engine(streaming=True).query(QUESTION)
    response.response_gen.close()
    del response
    gc.collect()

    assert [outcome.reason for outcome in beside_openinference.outcomes()] == ["answer_aborted"]
    assert beside_openinference.targets() == [ids(beside_openinference.span(QUERY))]
    assert beside_openinference.drawn_by_ragspan() == []


@pytest.mark.usefixtures("expected_failure")
def test_an_answer_that_fails_belongs_to_its_root(beside_openinference):
    with pytest.raises(ConnectionError):
        engine_over(FixedRetriever(ConnectionError("no database"))).query(QUESTION)

    assert [outcome.reason for outcome in beside_openinference.outcomes()] == ["answer_error"]
    assert beside_openinference.targets() == [ids(beside_openinference.span(QUERY))]


# Both by instrumentors, in either order


@pytest.mark.parametrize("first", ["openinference", "ragspan"])
def test_both_instrumentors(application, first):
    theirs, ours = LlamaIndexInstrumentor(), RagspanLlamaIndexInstrumentor()
    attach = [
        lambda: theirs.instrument(tracer_provider=application.provider),
        lambda: ours.instrument(sink=application.engine),
    ]
    for instrument in attach if first == "openinference" else reversed(attach):
        instrument()
    try:
        engine().query(QUESTION)
    finally:
        ours.uninstrument()
        theirs.uninstrument()

    assert application.scored_spans() == [QUERY]


# Without OpenInference: the answer's span is the one that is current


@each_call
def test_the_span_of_the_request(application, handle, call, root):
    handle(application)
    with application.tracer.start_as_current_span("POST /ask"):
        call()

    assert application.scored_spans() == ["POST /ask"]
    assert application.retrieval_spans() == [None]


class Attaching(BaseSpanHandler[SimpleSpan]):
    """Makes a span for each of the framework's, current while that one is open, as some instrumentations do."""

    _tracer: object = PrivateAttr()

    def __init__(self, tracer):
        super().__init__()
        self._tracer = tracer

    def new_span(self, id_, bound_args, instance=None, parent_span_id=None, tags=None, **_):
        span = self._tracer.start_span(id_.partition("-")[0])
        made = SimpleSpan(id_=id_, parent_id=parent_span_id)
        made.metadata = {"span": span, "token": context.attach(set_span_in_context(span))}
        return made

    def prepare_to_exit_span(self, id_, bound_args, instance=None, result=None, **_):
        made = self.open_spans[id_]
        context.detach(made.metadata["token"])
        made.metadata["span"].end()
        return made

    prepare_to_drop_span = prepare_to_exit_span


def test_an_instrumentation_that_makes_its_spans_current(application, handle):
    """Told of a span before us, it has made its own current by then."""
    attaching = Attaching(application.tracer)
    get_dispatcher().add_span_handler(attaching)
    try:
        handle(application)
        engine().query(QUESTION)
    finally:
        get_dispatcher().span_handlers.remove(attaching)

    assert application.scored_spans() == [QUERY]


# The spans of searches


def test_each_search_of_a_streamed_chat_knows_its_own_span(beside_openinference):
    chat = chat_engine("context")
    for question in ("The cello?", "The harp?"):
        response = chat.stream_chat(question)
        list(response.response_gen)

    spans = {ids(span) for span in beside_openinference.spans() if span.name.endswith("TopicRetriever.retrieve")}
    assert len(spans) == 2
    assert set(beside_openinference.retrieval_spans()) == spans


async def test_a_search_of_an_agents_tool_knows_its_span(beside_openinference, model):
    model.says(calls("search", input="cello"), ANSWER, "In the end.")
    await agent(engine_tool("search")).run(user_msg=QUESTION)

    (span,) = beside_openinference.retrieval_spans()
    assert span in {ids(span) for span in beside_openinference.spans() if ".aretrieve" in span.name}


@pytest.mark.usefixtures("expected_failure")
def test_a_search_that_fails_knows_its_span(beside_openinference):
    with pytest.raises(ConnectionError):
        engine_over(FixedRetriever(ConnectionError("no database"))).query(QUESTION)

    assert beside_openinference.retrieval_spans() == [ids(beside_openinference.span("FixedRetriever.retrieve"))]


def test_a_postprocessor_is_no_search(beside_openinference):
    from llama_index.core.postprocessor import SimilarityPostprocessor

    engine_over(FixedRetriever(found("cello", "harp")), SimilarityPostprocessor(similarity_cutoff=0.5)).query(QUESTION)

    assert beside_openinference.retrieval_spans() == [ids(beside_openinference.span("FixedRetriever.retrieve"))]


@pytest.mark.parametrize("mode", ["compact", "refine", "tree_summarize", "simple_summarize"])
def test_the_model_of_a_streamed_answer_is_told_beside_openinference(captured, mode):
    """OpenInference reads a stream in a context of its own, where nothing tells which stream it is."""
    instrumentor = LlamaIndexInstrumentor()
    instrumentor.instrument(tracer_provider=TracerProvider())
    try:
        assert "".join(engine(streaming=True, response_mode=mode).query(QUESTION).response_gen) == ANSWER
    finally:
        instrumentor.uninstrument()

    assert len(captured.record().generations) == (2 if mode == "refine" else 1)  # one for each of two passages
