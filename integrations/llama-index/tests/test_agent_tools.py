"""What an agent's tools bring to its prompt."""

import pytest
from captures import Answered
from li_agents import agent, ask, retriever_tool
from li_chats import chat_engine
from li_model import calls
from li_programs import (
    ANSWER,
    CELLO,
    HARP,
    OBOE,
    PASSAGES,
    FixedRetriever,
    TopicRetriever,
    engine,
    engine_over,
    engine_tool,
    ids,
    tools_know_their_run,
    topic_engine,
)
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.tools import FunctionTool, QueryEngineTool, RetrieverTool
from llama_index.core.workflow import Context, HumanResponseEvent, InputRequiredEvent

import ragspan

ASKED = "Which has more strings, and why?"
FINAL = "The harp, for it has no fingerboard."


async def test_passages_that_the_agent_looks_up_itself(captured, model):
    model.says(calls("look_up", input="cello"), FINAL)
    await ask(agent(retriever_tool()), ASKED)

    record = captured.record()
    assert Answered.of(record) == Answered(ASKED, [CELLO], FINAL)
    assert ids(record.contexts) == ["cello"]


async def test_passages_that_a_tool_leaves_out(captured, model):
    model.says(calls("look_up", input="?"), FINAL)
    cutoff = SimilarityPostprocessor(similarity_cutoff=0.95)
    await ask(agent(retriever_tool("cello", "harp", node_postprocessors=[cutoff])), ASKED)

    assert captured.answers() == [Answered(ASKED, [CELLO], FINAL)]


async def test_searches_one_after_another(captured, model):
    model.says(calls("look_up", input="harp"), calls("look_up", input="cello"), FINAL)
    await ask(agent(retriever_tool()), ASKED)

    assert captured.answers() == [Answered(ASKED, [HARP, CELLO], FINAL)]


async def test_searches_at_the_same_time(captured, model):
    model.says(calls("look_up", input="harp") + calls("look_up", input="cello"), FINAL)
    await ask(agent(retriever_tool()), ASKED)

    assert captured.answers() == [Answered(ASKED, [HARP, CELLO], FINAL)]


async def test_a_search_and_an_engine(captured, model):
    model.says(calls("look_up", input="harp"), calls("search", input="oboe"), ANSWER, FINAL)
    await ask(agent(retriever_tool(), engine_tool("search")), ASKED)

    assert captured.answers() == [Answered(ASKED, [HARP, OBOE], FINAL)]


async def test_a_search_that_finds_nothing(captured, model):
    model.says(calls("look_up", input="kazoo"), FINAL)
    await ask(agent(retriever_tool()), ASKED)

    assert captured.answers() == [Answered(ASKED, [], FINAL)]


async def test_an_engine_that_streams(captured, model):
    """The tool reads the stream for the agent, in a thread of its own."""
    model.says(calls("search", input="harp"), ANSWER, FINAL)
    await ask(agent(engine_tool("search", "harp", streaming=True)), ASKED)

    assert captured.answers() == [Answered(ASKED, [HARP], FINAL)]


async def test_the_answer_of_a_tool_as_the_agents_own(captured, model):
    """With `return_direct` the agent adds nothing."""
    model.says(calls("search", input="harp"), "Forty-seven.")
    tool = QueryEngineTool.from_defaults(engine("harp"), name="search", return_direct=True)
    await ask(agent(tool), ASKED)

    assert captured.answers() == [Answered(ASKED, [HARP], "Forty-seven.")]


# Functions as tools


@tools_know_their_run
async def test_a_function_that_says_what_it_hands_to_the_model(captured, model):
    def look_up(name: str) -> str:
        ragspan.record_contexts([PASSAGES[name]])
        return PASSAGES[name]

    model.says(calls("look_up", name="harp"), FINAL)
    await ask(agent(FunctionTool.from_defaults(look_up)), ASKED)

    assert captured.answers() == [Answered(ASKED, [PASSAGES["harp"]], FINAL)]


async def test_an_asynchronous_function_that_says_what_it_found_and_hands_to_the_model(captured, model):
    """What is both found and said stands in the prompt once."""

    async def look_up(name: str) -> str:
        nodes = await TopicRetriever().aretrieve(name)
        ragspan.record_contexts(node.node for node in nodes)
        return nodes[0].get_content()

    model.says(calls("look_up", name="harp"), FINAL)
    await ask(agent(look_up), ASKED)

    record = captured.record()
    assert (record.question, record.response) == (ASKED, FINAL)
    assert ids(record.contexts) == ["harp"]


@tools_know_their_run
async def test_a_function_that_searches(captured, model):
    def look_up(name: str) -> str:
        return "\n".join(node.get_content() for node in TopicRetriever().retrieve(name))

    model.says(calls("look_up", name="cello and harp"), FINAL)
    await ask(agent(look_up), ASKED)

    record = captured.record()
    assert (record.question, record.response) == (ASKED, FINAL)
    assert ids(record.contexts) == ["cello", "harp"]


@tools_know_their_run
async def test_a_function_that_asks_an_engine(captured, model):
    def look_up(name: str) -> str:
        return str(topic_engine().query(name))

    model.says(calls("look_up", name="harp"), ANSWER, FINAL)
    await ask(agent(look_up), ASKED)

    assert captured.answers() == [Answered(ASKED, [HARP], FINAL)]


async def test_a_function_that_has_a_chat(captured, model):
    async def look_up(name: str) -> str:
        return str(await chat_engine("context").achat(name))

    model.says(calls("look_up", name="harp"), ANSWER, FINAL)
    await ask(agent(look_up), ASKED)

    assert captured.answers() == [Answered(ASKED, [HARP], FINAL)]


async def test_a_function_that_asks_another_agent(captured, model):
    async def consult(question: str) -> str:
        return str(await ask(agent(retriever_tool()), question))

    model.says(calls("consult", question="The harp?"), calls("look_up", input="harp"), "It has more.", FINAL)
    await ask(agent(consult), ASKED)

    assert captured.answers() == [Answered(ASKED, [HARP], FINAL)]


async def test_a_function_that_searches_nothing(captured, model):
    def add(one: int, other: int) -> int:
        return one + other

    model.says(calls("add", one=4, other=47), "Fifty-one.")
    await ask(agent(add), "How many strings have both?")

    answer = captured.answer()
    assert (answer.question, answer.response) == ("How many strings have both?", "Fifty-one.")
    assert not answer.contexts


# Tools that fail


@pytest.mark.usefixtures("expected_failure")
async def test_a_function_that_fails(captured, model):
    """The framework tells the model of it, which goes on; the user never sees the error."""

    def look_up(name: str) -> str:
        raise LookupError("no such page")

    model.says(calls("look_up", name="harp"), FINAL)
    await ask(agent(look_up), ASKED)

    answer = captured.answer()
    assert (answer.question, answer.response, answer.status) == (ASKED, FINAL, "complete")
    assert tuple(answer.swallowed) == ("LookupError",)


@pytest.mark.usefixtures("expected_failure")
async def test_a_search_that_fails_and_another_that_does_not(captured, model):
    model.says(calls("broken", input="harp"), calls("look_up", input="harp"), FINAL)
    broken = RetrieverTool.from_defaults(FixedRetriever(ConnectionError("no database")), name="broken")
    await ask(agent(broken, retriever_tool()), ASKED)

    assert captured.answers() == [Answered(ASKED, [HARP], FINAL, swallowed=("ConnectionError",))]


@pytest.mark.usefixtures("expected_failure")
async def test_an_engine_that_fails(captured, model):
    model.says(calls("search", input="harp"), FINAL)
    tool = QueryEngineTool.from_defaults(engine_over(FixedRetriever(ConnectionError("no database"))), name="search")
    await ask(agent(tool), ASKED)

    answer = captured.answer()
    assert (answer.question, answer.response, answer.status) == (ASKED, FINAL, "complete")
    assert tuple(answer.swallowed) == ("ConnectionError",)


async def test_a_tool_that_the_agent_does_not_have(captured, model):
    model.says(calls("guess", input="harp"), FINAL)
    await ask(agent(retriever_tool()), ASKED)

    answer = captured.answer()
    assert (answer.question, answer.response, answer.status) == (ASKED, FINAL, "complete")


# The user is asked something in between


async def test_a_tool_that_waits_for_a_person(captured, model):
    """It is one run, whatever happens in between."""

    async def confirm(ctx: Context) -> str:
        """Ask the person."""
        reply = await ctx.wait_for_event(
            HumanResponseEvent, waiter_event=InputRequiredEvent(prefix="Really?"), waiter_id="really"
        )
        return reply.response

    model.says(calls("look_up", input="harp"), calls("confirm"), FINAL)
    run = agent(retriever_tool(), confirm).run(ASKED)
    async for event in run.stream_events():
        if isinstance(event, InputRequiredEvent):
            run.ctx.send_event(HumanResponseEvent(response="yes"))
    await run

    assert captured.answers() == [Answered(ASKED, [HARP], FINAL)]
