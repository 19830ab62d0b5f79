"""Requests as trees that are built by hand: no framework, no callbacks, no spans."""

from __future__ import annotations

import json

import pytest
from written_logs import ANSWER, FILTER, HOSE, MOTOR, PUMP, QUESTION, WrittenLog, documents

from ragspan.messages import ErrorReport
from ragspan.records import RagRecord, SpanAnchor
from ragspan.request import ModelStep, RequestTree, RerankStep, SearchStep, Step, ToolStep
from ragspan.request.contents import Call, Document, PayloadMessage
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

    def begins(self, kind, name, around=None, **about):
        return self.tree.begin(kind(name=name, parent=around or self.root, started_ns=self.now(), **about))

    def takes(self, kind, name, output, around=None, **about):
        step = self.begins(kind, name, around, **about)
        self.tree.end(step, self.now(), output)
        return step

    def search(self, *texts: str, query: str = QUESTION) -> SearchStep:
        return self.takes(SearchStep, "search", documents(*texts), inputs=query)

    def model(self, reply: str, prompt: str = PROMPT) -> ModelStep:
        return self.takes(ModelStep, "model", PayloadMessage("ai", reply), inputs=[prompt], tokens=reply.split(" "))

    def ends(self, output: object) -> RagRecord | None:
        self.tree.end(self.root, self.now(), output)
        return record_of(self.tree)

    def is_left(self) -> RagRecord | None:
        self.tree.fail(self.root, self.now(), LEFT)
        return record_of(self.tree)


def test_a_resumed_request_is_asked_what_the_interrupted_one_was():
    resumed = Program(OPAQUE, before=Program().tree)
    resumed.search(PUMP, query="pump warranty")
    resumed.model(ANSWER)

    assert resumed.ends(ANSWER).question == QUESTION


def searches_of_every_kind(program):
    """A search that reranks another one's result, a tool that is a search, and one that searches and asks a model."""
    outer = program.begins(SearchStep, "reranking search", inputs=QUESTION, span=SpanAnchor(trace_id=7, span_id=8))
    scored = [
        Document(MOTOR, "m", {}),
        Document(PUMP, "p", {"relevance_score": 0.9, "source": 7, "file_name": "manual.pdf"}),
    ]
    program.takes(SearchStep, "search", scored, outer, inputs=QUESTION, metadata={"top_k": 4, "data_source_id": "shop"})
    program.tree.end(outer, program.now(), scored[1:])
    same = program.begins(SearchStep, "wrapping search", inputs=QUESTION)
    program.takes(SearchStep, "search", scored[:1], same, inputs=QUESTION)
    program.tree.end(same, program.now(), scored[:1])
    for name, output, inner in (("look_up", FILTER, SearchStep), ("helper", "It is so.", ModelStep)):
        tool = program.begins(
            ToolStep, name, inputs={"query": "filter", "seen": [scored[0], OPAQUE]}, call_id=f"call of {name}"
        )
        program.takes(SearchStep, "search", documents(FILTER), tool, inputs="filter")
        if inner is ModelStep:
            program.takes(ModelStep, "small", PayloadMessage("ai", output), tool, inputs=["Is it so?"])
        program.tree.end(tool, program.now(), PayloadMessage("tool", output))
    tool = program.begins(ToolStep, "order", inputs="a text")
    program.tree.fail(tool, program.now(), ErrorReport(type="TimeoutError", message="no answer"))
    asking = PayloadMessage("ai", calls=[Call("look_up", "call of look_up", {"query": "filter"})])
    told = [
        *(PayloadMessage("system", f"Use this: {PUMP}"), PayloadMessage("human", QUESTION), asking),
        *(PayloadMessage("tool", FILTER, call_id="call of look_up"), "Be brief.", OPAQUE),
    ]
    program.takes(ModelStep, "chat", asking, inputs=told[:2], model="small", provider="maker", streamed=True)
    notes = [{"model_name": "small-1", "finish_reason": "stop", "id": "r-1"}, {"input_tokens": 9, "output_tokens": 3}]
    step = program.takes(
        ModelStep, "chat", PayloadMessage("ai", ANSWER), inputs=told, provider_metadata=notes, beside=documents(HOSE)
    )
    step.first_token_ns = step.started_ns


def rerankers_of_every_kind(program):
    """One that reranks, one that leaves documents out, and two filters that left out nothing, or failed."""
    found = program.search(MOTOR, PUMP, FILTER).output
    about = {"query": QUESTION, "inputs": found, "model": "ranker", "top_k": 2}
    program.takes(RerankStep, "rerank", [[found[1], 0.5], [found[0], 1]], **about)
    for name, left in (("cut off", found[1:]), ("no cut", found)):
        program.takes(RerankStep, name, left, inputs=found, is_filter=True)
    step = program.begins(RerankStep, "broken", inputs=found, is_filter=True)
    program.tree.fail(step, program.now(), ErrorReport(type="OSError", message="gone"))
    program.begins(RerankStep, "open", inputs=found)
    program.begins(ModelStep, "silent", inputs=[PROMPT])
    program.takes(ModelStep, "model", PayloadMessage("ai", ANSWER), inputs=[PROMPT])


@pytest.mark.parametrize("steps", [searches_of_every_kind, rerankers_of_every_kind])
def test_the_whole_record_of_steps_of_every_kind(whole_records, steps):
    own = {"thread_id": "t-1", "user_id": "u-1", "plan": "basic", "nested": {"too": "deep"}}
    traced = {"ls_model": 1, "langgraph_step": 1, "checkpoint_ns": "c", "__x": 1, "llamaindex.x": 1}
    about = {"run_id": "run-1", "tags": ["beta", 3], "anchor": SpanAnchor(trace_id=1, span_id=2)}
    program = Program({"question": QUESTION}, metadata=own | traced, **about)
    steps(program)
    if steps is rerankers_of_every_kind:
        program.tree.fail(program.root, program.now(), ErrorReport(type="OSError", message="gone"))
    else:
        program.tree.end(program.root, program.now(), ANSWER)
    told = json.loads(record_of(program.tree).to_json())
    del told["record_id"]
    known, found = whole_records.told(f"test_tree {steps.__name__}", told)

    assert found == known


def test_an_event_of_a_kind_that_is_not_known_is_ignored():
    log = WrittenLog()
    log.searches(PUMP)
    log.says(ANSWER, PROMPT)
    log.log.events.insert(2, ("a kind of tomorrow", 1, 0, 1, {"text": "new"}, None))
    log.log.events.append(("another", "nowhere", None, 1, None, None))

    assert log.answers(ANSWER).response == ANSWER


@pytest.mark.parametrize(("said", "response"), [("", None), ("It runs for", "Itrunsfor")], ids=["before", "while"])
def test_a_stream_that_is_left_before_or_while_its_model_speaks_has_what_it_said(said, response):
    """What a model wrote for a search that came after it never reached the reader."""
    program = Program({"input": ""})
    program.model("warranty pump years", "Rewrite the question.")
    program.search(PUMP, query="warranty pump years")
    if said:
        program.model(said)
    record = program.is_left()

    assert (record.status, record.response) == ("aborted", response)


@pytest.mark.parametrize(
    ("status", "errors"),
    [
        ("aborted", ["GeneratorExit", "CancelledError", "KeyboardInterrupt"]),
        ("interrupted", ["GraphInterrupt", "NodeInterrupt", "GraphDrained"]),
        ("error", ["OSError"]),
    ],
)
def test_what_ended_a_request(status, errors):
    for error in errors:
        program = Program()
        program.model(ANSWER)
        program.tree.fail(program.root, program.now(), ErrorReport(type=error, message="gone"))
        record = record_of(program.tree)

        assert (record.status, record.response) == (status, None)
        assert (record.error_type, record.error) == ((error, program.tree.noted) if status == "error" else (None, None))


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
    for kind in (SearchStep, Step, ToolStep):
        assert_question(inputs, question, kind)


@pytest.mark.parametrize(
    "inputs",
    [
        {"system_prompt": "You are a bot. Be nice.", "user": QUESTION},
        {"input_language": "English", "utterance": QUESTION},
        {"wording": QUESTION, "chat": [PayloadMessage("human", "Hello?"), PayloadMessage("ai", "Hi.")]},
        {"prompt_template": "Answer: {}", "text": QUESTION},
    ],
)
def test_a_conversation_that_ends_with_its_model_and_instructions_are_no_question(inputs):
    """Nothing was searched with, so names alone decide."""
    assert_question(inputs, QUESTION)


def assert_question(inputs, question, kind=None):
    program = Program(inputs)
    if kind is not None:
        given = {"k": 2, "query": QUESTION} if kind is ToolStep else QUESTION
        program.takes(kind, "search", documents(PUMP), inputs=given)
    program.model(ANSWER)
    record = program.ends(ANSWER)

    assert record.question == question


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

    assert record.response == response
    assert [context.text for context in record.contexts or ()] == [PUMP]


@pytest.mark.parametrize("kept", [{}, None])
def test_an_answer_that_the_state_does_not_keep_reached_the_caller_on_the_way(kept):
    program = Program({"question": QUESTION})
    program.search(PUMP)
    node = program.begins(Step, "answer")
    program.takes(ModelStep, "model", PayloadMessage("ai", ANSWER), node, inputs=[PROMPT])
    program.tree.end(node, program.now(), kept)
    record = program.ends({"question": QUESTION, "docs": documents(PUMP)})

    assert record.response == ANSWER


def test_a_filter_that_left_nothing_gave_an_answer_without_a_model_no_documents():
    program = Program()
    program.search(PUMP)
    program.takes(RerankStep, "filter", [], is_filter=True)
    record = program.ends("Nothing was found.")

    assert (record.contexts, record.contexts_unknown) == ((), None)


def test_documents_of_the_history_that_a_later_prompt_has_as_its_own_count():
    found = PayloadMessage("tool", PUMP, artifact=documents(PUMP))
    program = Program()
    for messages in ([found, PayloadMessage("human", QUESTION)], [PayloadMessage("human", QUESTION), found]):
        program.takes(ModelStep, "model", PayloadMessage("ai", ANSWER), inputs=messages)
    record = program.ends(ANSWER)

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

    assert record.retrievals == ()
    assert [call.name for call in record.tool_calls] == ["lookup"]


@pytest.mark.parametrize(
    "name",
    [
        *("session_id", "session.id", "thread_id", "conversation_id", "langfuse_session_id", "gen_ai.conversation.id"),
        *("sessionId", "threadId", "conversationId", "user_id", "user.id", "langfuse_user_id", "enduser.id", "userId"),
    ],
)
def test_the_session_and_the_user_are_known_by_the_names_that_other_tools_give_them(name):
    log = WrittenLog()
    log.log.about["metadata"] = {name: 7}
    log.says(ANSWER)
    record = log.ends(ANSWER)

    assert (record.session_id, record.user_id) == ((None, "7") if "user" in name.lower() else ("7", None))
