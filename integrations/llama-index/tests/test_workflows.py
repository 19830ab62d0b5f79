"""One run of a workflow is one request, whatever its events and its result look like.

The framework reads the annotations of steps at run time, so that here they are no strings.
"""

import pytest
from captures import Answered, Grounded
from li_programs import ANSWER, CELLO, HARP, QUESTION, ask_model, drained, found, topic_engine
from li_workflows import Answering, Retrieved, one_step
from llama_index.core import Settings
from llama_index.core.llms import ChatMessage
from llama_index.core.schema import MetadataMode
from llama_index.core.workflow import Context, Event, StartEvent, StopEvent, Workflow, step

BOTH = "What of the cello and the harp?"
COMPLETE = Answered(BOTH, [CELLO, HARP], ANSWER)


@pytest.mark.parametrize(
    ("finish", "response"),
    [
        (str, ANSWER),
        (lambda response: response, ANSWER),
        (lambda response: {"answer": str(response), "sources": ["cello"]}, ANSWER),
        (lambda response: {"response": response}, ANSWER),
        (lambda response: f"Gladly: {response}", f"Gladly: {ANSWER}"),
    ],
    ids=["text", "response", "dictionary", "dictionary of a response", "made of a response"],
)
async def test_a_result(captured, finish, response):
    await Answering(finish).run(query=BOTH)

    assert captured.answers() == [Answered(BOTH, [CELLO, HARP], response)]


@pytest.mark.parametrize(
    ("finish", "response"),
    [
        (lambda said: {"reply": said, "intent": "strings"}, ANSWER),
        (lambda said: {"intent": "strings", "reply": said, "language": "en"}, ANSWER),
        (lambda said: [ChatMessage("And?"), ChatMessage(said, role="assistant")], ANSWER),
        (lambda said: {"one": "this", "other": "that"}, '{"one": "this", "other": "that"}'),
    ],
    ids=["fields", "other fields", "messages", "fields that nobody said"],
)
@pytest.mark.parametrize("streamed", [False, True])
async def test_a_result_of_several_parts(captured, finish, response, streamed):
    """The answer is the part that a model said."""

    async def answer(event):
        if streamed:
            chunks = await Settings.llm.astream_complete(event.query)
            return finish("".join([chunk.delta async for chunk in chunks]))
        return finish(ask_model(event.query))

    await one_step(answer).run(query=QUESTION)

    assert captured.answer().response == response


async def test_an_answer_that_is_told_as_events(captured):
    """The result is empty, and the user read what the model streamed, by what a step had looked up in a way of its own."""

    class Telling(Workflow):
        @step
        async def look_up(self, event: StartEvent) -> Retrieved:
            return Retrieved(nodes=found("cello"), query=event.query, players=[["Ada Byron", "since 1836"]])

        @step
        async def answer(self, context: Context, event: Retrieved) -> StopEvent:
            players = ChatMessage("They are " + " ".join(event.players[0]), role="system")
            asked = ChatMessage(f"{event.nodes[0].get_content(MetadataMode.LLM)} {event.query}")
            async for chunk in await Settings.llm.astream_chat([players, asked]):
                context.write_event_to_stream(Event(text=chunk.delta))
            return StopEvent(result="")

    run = Telling().run(query=QUESTION)
    assert "".join([event.text async for event in run.stream_events() if "text" in event]) == ANSWER
    await run

    known = [("other", "Ada Byron since 1836")]
    wanted = Grounded(question=QUESTION, contexts=[CELLO], response=ANSWER, background=known)
    assert captured.grounded_answers() == [wanted]


@pytest.mark.parametrize(
    ("finish", "read"),
    [
        (lambda response: response, lambda response: response.async_response_gen()),
        (lambda response: response.response_gen, lambda tokens: tokens),
    ],
    ids=["response", "bare stream"],
)
async def test_a_streamed_result(captured, finish, read):
    result = await Answering(finish, streaming=True).run(query=BOTH)
    assert captured.answers() == []

    assert await drained(read(result)) == ANSWER
    assert captured.answers() == [COMPLETE]


# How it is started and stopped


class Started(StartEvent):
    user: str
    question: str


class Stopped(StopEvent):
    answer: str
    sources: int


class Typed(Workflow):
    """Has start and stop events of its own."""

    @step
    async def answer(self, event: Started) -> Stopped:
        response = await topic_engine().aquery(event.question)
        return Stopped(answer=str(response), sources=len(response.source_nodes))


@pytest.mark.parametrize(
    "given",
    [{"user": "Ada", "question": BOTH}, {"start_event": Started(user="Ada", question=BOTH)}],
    ids=["fields", "whole event"],
)
async def test_events_of_the_applications_own_classes(captured, given):
    stopped = await Typed().run(**given)

    assert stopped.answer == ANSWER
    assert captured.answers() == [COMPLETE]
