"""Requests as trees that are built by hand: no framework, no callbacks, no spans."""

from __future__ import annotations

import json

import pytest
from written_logs import ANSWER, FILTER, MOTOR, PUMP, QUESTION, WrittenLog, documents

from ragspan.messages import ErrorReport
from ragspan.records import RagRecord
from ragspan.request import ModelStep, RequestTree, RerankStep, SearchStep, Step
from ragspan.request.contents import PayloadMessage
from ragspan.request.record_making import record_of
from ragspan.safe_copy import OPAQUE

LEFT = ErrorReport(type="GeneratorExit", message="")
PROMPT = f"Answer from this: {PUMP}\n{QUESTION}"


class Program:
    """A request with its root; each method adds a step that begins and ends."""

    def __init__(self, inputs: object = QUESTION, **about: object) -> None:
        self.tree = RequestTree(started_ns=1, ended_ns=1000, **about)  # type: ignore[arg-type]
        self.time_ns = 1
        self.root = self.tree.begin(Step(name="program", parent=None, started_ns=1, inputs=inputs))

    def now(self) -> int:
        self.time_ns += 1
        return self.time_ns

    def search(self, *texts: str, query: str = QUESTION) -> SearchStep:
        step = SearchStep(name="search", parent=self.root, started_ns=self.now(), inputs=query)
        self.tree.end(self.tree.begin(step), self.now(), documents(*texts))
        return step

    def model(self, reply: str, prompt: str = PROMPT) -> ModelStep:
        step = ModelStep(
            name="model", parent=self.root, started_ns=self.now(), inputs=[prompt], tokens=reply.split(" ")
        )
        self.tree.end(self.tree.begin(step), self.now(), PayloadMessage("ai", reply))
        return step

    def ends(self, output: object) -> RagRecord | None:
        self.tree.end(self.root, self.now(), output)
        return record_of(self.tree)

    def is_left(self) -> RagRecord | None:
        self.tree.fail(self.root, self.now(), LEFT)
        return record_of(self.tree)


def test_a_search_and_a_model_make_a_record():
    program = Program()
    program.search(PUMP, MOTOR)
    program.model(ANSWER)
    record = program.ends(ANSWER)

    assert record is not None
    assert (record.question, record.response, record.status) == (QUESTION, ANSWER, "complete")
    assert [context.text for context in record.contexts or ()] == [PUMP]
    assert [len(search.contexts) for search in record.retrievals] == [2]


def test_a_resumed_request_is_asked_what_the_interrupted_one_was():
    resumed = Program(OPAQUE, before=Program().tree)
    resumed.search(PUMP, query="pump warranty")
    resumed.model(ANSWER)

    assert resumed.ends(ANSWER).question == QUESTION


def test_a_reranker_that_was_seen_is_shown():
    program = Program()
    found = program.search(MOTOR, PUMP)
    step = RerankStep(name="rerank", parent=program.root, started_ns=program.now(), query=QUESTION, inputs=found.output)
    program.tree.end(program.tree.begin(step), program.now(), found.output[1:])
    program.model(ANSWER)
    record = program.ends(ANSWER)

    assert record is not None
    (reranking,) = record.rerankings
    assert [context.text for context in reranking.given] == [MOTOR, PUMP]
    assert [context.text for context in reranking.contexts] == [PUMP]


def test_an_event_of_a_kind_that_is_not_known_is_ignored():
    log = WrittenLog()
    log.searches(PUMP)
    log.says(ANSWER, PROMPT)
    log.log.events.insert(2, ("a kind of tomorrow", 1, 0, 1, {"text": "new"}, None))
    log.log.events.append(("another", "nowhere", None, 1, None, None))

    assert log.answers(ANSWER).response == ANSWER


def test_a_stream_that_is_left_before_its_model_spoke_has_no_response():
    """What a model wrote for a search that came after it never reached the reader."""
    program = Program({"input": ""})
    program.model("warranty pump years", "Rewrite the question.")
    program.search(PUMP, query="warranty pump years")
    record = program.is_left()

    assert record is not None
    assert (record.status, record.response) == ("aborted", None)


def test_a_stream_that_is_left_while_its_model_speaks_has_what_it_said():
    program = Program({"input": ""})
    program.search(PUMP)
    step = program.model("It runs for")
    record = program.is_left()

    assert record is not None
    assert (record.status, record.response) == ("aborted", "".join(step.tokens))


# The question


@pytest.mark.parametrize(
    ("inputs", "question"),
    [
        ({"system": "Be nice. Are you?", "user": QUESTION}, QUESTION),
        ({"text": QUESTION, "earlier": [PayloadMessage("human", "Hello?"), PayloadMessage("ai", "Hi.")]}, QUESTION),
        ({"data": {"topic": "pumps", "wish": QUESTION}}, QUESTION),
        ({"prompt": "Answer well", "frage": QUESTION}, QUESTION),
        ({"question": "How long?", "keywords": QUESTION}, "How long?"),
        ({"topic": "pumps", "messages": [PayloadMessage("human", QUESTION)]}, QUESTION),
        (
            {
                "messages": [
                    PayloadMessage("human", "Hello?"),
                    PayloadMessage("ai", "Hi."),
                    PayloadMessage("human", QUESTION),
                ]
            },
            QUESTION,
        ),
    ],
)
def test_what_was_searched_with_is_the_question_unless_a_field_says_so(inputs, question):
    program = Program(inputs)
    program.search(PUMP)
    program.model(ANSWER)
    record = program.ends(ANSWER)

    assert record is not None
    assert record.question == question


@pytest.mark.parametrize(
    "inputs",
    [
        {"system_prompt": "You are a bot. Be nice.", "user": QUESTION},
        {"input_language": "English", "utterance": QUESTION},
        {"q": QUESTION, "chat": [PayloadMessage("human", "Hello?"), PayloadMessage("ai", "Hi.")]},
        {"prompt_template": "Answer: {}", "text": QUESTION},
    ],
)
def test_a_conversation_that_ends_with_its_model_and_instructions_are_no_question(inputs):
    """Nothing was searched with, so names alone decide."""
    program = Program(inputs)
    program.model(ANSWER)
    record = program.ends(ANSWER)

    assert record is not None
    assert record.question == QUESTION


# The response


@pytest.mark.parametrize(
    ("said", "response"),
    [
        (f"<think>Nine bar, perhaps?</think>\n\n{ANSWER}", ANSWER),
        (f"<thinking>One.</thinking><thinking>Two.</thinking> {ANSWER}", ANSWER),
        (f"The server leaves the opening out.</think>\n{ANSWER}", ANSWER),
        (f"[THINK]Nine bar.[/THINK]{ANSWER}", ANSWER),
        ("Write <think> before and </think> after it.", "Write <think> before and </think> after it."),
        ("[Analysis] The pump runs.", "[Analysis] The pump runs."),
        ("<think>It never came to an answer", None),
    ],
)
def test_what_a_model_thought_is_no_part_of_the_response(said, response):
    program = Program()
    program.search(PUMP)
    program.model(said)
    record = program.ends(said)

    assert record is not None
    assert record.response == response
    assert [context.text for context in record.contexts or ()] == [PUMP]


@pytest.mark.parametrize("kept", [{}, None])
def test_an_answer_that_the_state_does_not_keep_reached_the_caller_on_the_way(kept):
    program = Program({"question": QUESTION})
    program.search(PUMP)
    node = program.tree.begin(Step(name="answer", parent=program.root, started_ns=program.now()))
    model = ModelStep(name="model", parent=node, started_ns=program.now(), inputs=[PROMPT])
    program.tree.end(program.tree.begin(model), program.now(), PayloadMessage("ai", ANSWER))
    program.tree.end(node, program.now(), kept)
    record = program.ends({"question": QUESTION, "docs": documents(PUMP)})

    assert record is not None
    assert record.response == ANSWER


def test_a_filter_that_left_nothing_gave_an_answer_without_a_model_no_documents():
    program = Program()
    program.search(PUMP)
    step = program.tree.begin(RerankStep(name="filter", parent=program.root, started_ns=program.now(), is_filter=True))
    program.tree.end(step, program.now(), [])
    record = program.ends("Nothing was found.")

    assert record is not None
    assert (record.contexts, record.contexts_unknown) == ((), None)


def test_documents_of_the_history_that_a_later_prompt_has_as_its_own_count():
    found = PayloadMessage("tool", PUMP, artifact=documents(PUMP))
    program = Program()
    for messages in ([found, PayloadMessage("human", QUESTION)], [PayloadMessage("human", QUESTION), found]):
        step = ModelStep(name="model", parent=program.root, started_ns=program.now(), inputs=messages)
        program.tree.end(program.tree.begin(step), program.now(), PayloadMessage("ai", ANSWER))
    record = program.ends(ANSWER)

    assert record is not None
    assert [context.text for context in record.contexts or ()] == [PUMP]


# Tools that are searches


@pytest.mark.parametrize(
    "result",
    [
        json.dumps([{"text": PUMP, "id": 1}, {"text": FILTER, "id": 2}]),
        json.dumps({"results": [{"content": PUMP, "score": 0.9}, {"content": FILTER}]}),
        PayloadMessage("tool", [{"type": "text", "text": PUMP}, {"type": "text", "text": FILTER}]),
        PayloadMessage("tool", "see the artifact", artifact=documents(PUMP, FILTER)),
    ],
    ids=["JSON", "JSON around it", "blocks of an MCP server", "an artifact"],
)
def test_the_result_of_a_tool_that_is_named_as_a_search_is_documents(monkeypatch, result):
    monkeypatch.setenv("RAGSPAN_RETRIEVAL_TOOLS", "other, lookup")
    log = WrittenLog()
    log.calls_tool("lookup", {"query": "warranty"}, result)
    log.says(ANSWER, PROMPT)
    record = log.ends(ANSWER)

    assert record is not None
    assert [context.text for context in record.contexts or ()] == [PUMP]
    (search,) = record.retrievals
    assert (search.name, search.query, [context.text for context in search.contexts]) == (
        "lookup",
        "warranty",
        [PUMP, FILTER],
    )


def test_a_tool_that_nobody_names_is_no_search():
    log = WrittenLog()
    log.calls_tool("lookup", {"query": "warranty"}, f'[{{"text": "{PUMP}"}}]')
    log.says(ANSWER, PROMPT)
    record = log.ends(ANSWER)

    assert record is not None
    assert record.retrievals == ()
    assert [call.name for call in record.tool_calls] == ["lookup"]
