import asyncio
import itertools
import threading
from types import SimpleNamespace

import pytest
from opentelemetry.sdk.trace import TracerProvider

import ragspan
from ragspan import Background, RagRecord, RetrievedContext, field_names
from ragspan.capturing import add_context_recorder, answer, enclosing_answer
from ragspan.defaults import set_default_engine
from ragspan.messages import Message
from ragspan.record_json import MAX_CONTEXTS
from ragspan.testing import RecordingSink
from ragspan.throttled_log import ThrottledLog


@pytest.fixture
def sink():
    return RecordingSink()


def test_a_block_makes_one_record_of_what_was_set(sink):
    with ragspan.capture(question="When?", sink=sink, name="desk", session_id="s", user_id="u", tags=["t"]) as answer:
        answer.contexts = ["At night.", RetrievedContext(text="Daily.", rank=1)]
        answer.response = "At night."

    (record,) = sink.records()
    assert (record.question, record.response, record.status) == ("When?", "At night.", "complete")
    assert [context.text for context in record.contexts] == ["At night.", "Daily."]
    assert (record.name, record.session_id, record.user_id, record.tags) == ("desk", "s", "u", ("t",))
    assert record.ended_ns > record.started_ns


def test_what_was_not_set_is_unknown(sink):
    with ragspan.capture(sink=sink):
        pass

    (record,) = sink.records()
    assert (record.question, record.contexts, record.response) == (None, None, None)


@pytest.mark.parametrize(
    ("error", "status", "error_type"),
    [
        (ValueError("x"), "error", "ValueError"),
        (asyncio.CancelledError(), "aborted", None),
        (KeyboardInterrupt(), "aborted", None),
    ],
)
def test_an_exception_passes_through_and_marks_the_answer(sink, error, status, error_type):
    with pytest.raises(type(error)), ragspan.capture(sink=sink):
        raise error

    (record,) = sink.records()
    assert (record.status, record.error_type) == (status, error_type)


def test_the_current_span_becomes_the_parent(sink):
    tracer = TracerProvider(shutdown_on_exit=False).get_tracer("app")
    with tracer.start_as_current_span("request") as span, ragspan.capture(sink=sink):
        pass

    parent = sink.records()[0].parent
    assert (parent.trace_id, parent.span_id) == (span.get_span_context().trace_id, span.get_span_context().span_id)


async def test_blocks_of_concurrent_tasks_do_not_mix(sink):
    async def ask(name):
        with ragspan.capture(question=name, sink=sink) as answer:
            await asyncio.sleep(0)
            ragspan.record_contexts([f"passage of {name}"])
            await asyncio.sleep(0)
            answer.response = name

    names = [f"q{number}" for number in range(20)]
    await asyncio.gather(*map(ask, names))

    records = sink.records()
    assert sorted(record.question for record in records) == sorted(names)
    assert all(
        record.contexts[0].text == f"passage of {record.question}" == f"passage of {record.response}"
        for record in records
    )


def test_a_block_may_be_left_in_another_context(sink):
    def lines():
        with ragspan.capture(question="q", sink=sink):
            yield "line"

    opened = lines()
    next(opened)
    closer = threading.Thread(target=opened.close)
    closer.start()
    closer.join()

    assert sink.records()[0].status == "aborted"
    assert enclosing_answer() is None


def test_recorded_contexts_follow_those_that_were_set(sink):
    with ragspan.capture(sink=sink) as answer:
        ragspan.record_contexts(["recorded"])
        answer.contexts = ["set"]

    assert [context.text for context in sink.records()[0].contexts] == ["set", "recorded"]


class RecorderOfOneRequest:
    """An integration that takes contexts while a request of its own runs."""

    def __init__(self):
        self.running = False
        self.taken = []

    def __call__(self, contexts):
        if self.running:
            self.taken += contexts
        return self.running


def test_an_integration_is_asked_first(sink):
    recorder = RecorderOfOneRequest()
    add_context_recorder(recorder)
    recorder.running = True
    with ragspan.capture(sink=sink):
        ragspan.record_contexts(["for the integration"])
    recorder.running = False

    assert [context.text for context in recorder.taken] == ["for the integration"]
    assert sink.records()[0].contexts is None


def test_what_integrations_saw_inside_fills_in_what_was_not_set(sink):
    seen, ended = RagRecord(question="seen", contexts=["seen"], response="seen"), []
    with ragspan.capture(sink=sink) as answer:
        enclosing_answer().part("integration", lambda: seen, ended.append)
        answer.response = "set"

    (record,) = sink.records()
    assert ended == [seen]
    assert (record.question, record.contexts[0].text, record.response) == ("seen", "seen", "set")


class Unreadable:
    """A document whose text is loaded when it is asked for, and the store is gone."""

    def __init__(self, error):
        self._error = error

    @property
    def page_content(self):
        raise self._error


@pytest.fixture(autouse=True)
def fresh_log(monkeypatch):
    monkeypatch.setattr(answer, "_log", ThrottledLog())


def test_a_document_that_cannot_be_read_costs_itself_and_nothing_else(sink, caplog):
    error = LookupError("secret")
    with ragspan.capture(sink=sink) as answer:
        ragspan.record_contexts(iter(["recorded", Unreadable(error)]))
        answer.contexts = ["first", Unreadable(error), "last"]

    assert [context.text for context in sink.records()[0].contexts] == ["first", "last", "recorded"]
    assert "this Unreadable has none" in caplog.text
    assert "secret" not in caplog.text


def raising_midway():
    yield "first"
    raise LookupError


@pytest.mark.parametrize("contexts", [[Unreadable(LookupError())], raising_midway(), 5, "one string", [5]])
def test_contexts_of_which_none_can_be_read_are_unknown(sink, contexts):
    with ragspan.capture(sink=sink) as answer:
        answer.contexts = contexts
    ragspan.record_contexts(contexts)

    assert sink.records()[0].contexts is None


@pytest.mark.parametrize(
    "contexts", [range(10**9), iter(range(10**9)), {"text": "t"}], ids=["range", "iterator", "dict"]
)
def test_what_is_no_list_of_contexts_is_not_walked_through(sink, caplog, contexts):
    with ragspan.capture(sink=sink) as answer:
        answer.contexts = contexts

    assert sink.records()[0].contexts is None
    assert f"contexts are a list or tuple of texts or documents, not {type(contexts).__name__}" in caplog.text


def test_of_a_generator_without_end_as_many_contexts_are_read_as_a_record_holds(sink, caplog):
    with ragspan.capture(sink=sink) as answer:
        answer.contexts = (str(number) for number in itertools.count())

    assert len(sink.records()[0].contexts) == MAX_CONTEXTS
    assert f"more than {MAX_CONTEXTS} contexts" in caplog.text


def test_a_program_may_say_that_no_context_reaches_the_prompt(sink):
    for said in ([], (), iter(())):
        with ragspan.capture(sink=sink):
            ragspan.record_contexts(said)
        with ragspan.capture(sink=sink):
            ragspan.record_contexts(said)
            ragspan.record_contexts(["but this one does"])

    assert [[context.text for context in record.contexts] for record in sink.records()] == [
        [],
        ["but this one does"],
    ] * 3


def test_the_exception_of_the_block_is_not_replaced_by_that_of_a_document(sink):
    with pytest.raises(ValueError, match="of the block"), ragspan.capture(sink=sink) as answer:  # noqa: PT012
        answer.contexts = [Unreadable(LookupError())]
        raise ValueError("of the block")

    assert sink.records()[0].error_type == "ValueError"


class Failing:
    """Raises as a sink, and where it is ended as a part."""

    def submit(self, capture):
        raise LookupError


def test_a_part_that_raises_costs_what_it_saw(sink):
    with ragspan.capture(sink=sink) as answer:
        answer.part("integration", lambda: RagRecord(question=None, contexts=None, response="s"), Failing().submit)
        answer.response = "r"

    assert sink.records()[0].response == "r"


def test_a_sink_that_raises_costs_the_record():
    with ragspan.capture(sink=Failing()) as answer:
        answer.response = "r"

    assert answer.closed


@pytest.mark.parametrize("name", ["RAGSPAN_QUEUE_SIZE", "RAGSPAN_SINK"])
def test_a_wrong_setting_is_logged_and_the_block_runs(monkeypatch, caplog, name):
    monkeypatch.setenv(name, "none")
    before = set_default_engine(None)
    try:
        for _ in range(3):
            with ragspan.capture() as answer:
                answer.response = "r"
    finally:
        assert set_default_engine(before) is None

    [line] = caplog.messages
    assert line.startswith(f"an answer or a part of it is not captured: {name}")


def test_what_is_no_text_is_logged_by_its_type_alone(sink, caplog):
    with ragspan.capture(sink=sink) as answer:
        answer.contexts = [{"secret": "secret"}]
    with ragspan.capture(sink=sink) as answer:
        answer.response = ["secret"]

    kept_out = "an answer or a part of it is not captured: "
    assert [line.removeprefix(kept_out) for line in caplog.messages] == [
        f"a context that is a dictionary has a text under one of {', '.join(field_names.TEXT)}",
        "response should be a text, not list",
    ]


def test_dictionaries_of_a_store_are_contexts(sink):
    with ragspan.capture(sink=sink) as answer:
        answer.contexts = [{"text": "Card payments settle within two days.", "id": 7, "score": 0.5, "url": "a.html"}]
        ragspan.record_contexts([{"content": "Refunds take a week."}])

    [record] = sink.records()
    assert record.contexts == (
        RetrievedContext(text="Card payments settle within two days.", id="7", score=0.5, source="a.html"),
        RetrievedContext(text="Refunds take a week."),
    )


def test_a_misspelt_part_of_an_answer_is_logged(sink, caplog):
    with ragspan.capture(sink=sink) as answer:
        answer.context = ["secret"]

    assert caplog.messages == ["an answer has no 'context': set its question, contexts and response"]


def test_threads_that_need_a_part_at_the_same_time_get_the_same_one(sink):
    both_are_here = threading.Barrier(2)

    def make():
        both_are_here.wait(10)  # both have found none
        return RagRecord(question=None, contexts=None, response="seen")

    parts = []
    with ragspan.capture(sink=sink) as answer:
        threads = [threading.Thread(target=lambda: parts.append(answer.part("owner", make, id))) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert parts[0] is parts[1]
    assert sink.records()[0].response == "seen"


def test_background_and_the_prompt_can_be_set(sink):
    with ragspan.capture(question="Fee?", sink=sink) as answer:
        answer.contexts = ["Cards are grey."]
        answer.background = ["49 euros", Background(text="rows: 1", kind="tool")]
        answer.prompt = [
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "Fee?"}, {"type": "image_url", "image_url": {}}]},
            {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]},
            SimpleNamespace(role="tool", content="rows: 1"),
        ]
        answer.response = "49 euros"

    (record,) = sink.records()
    assert record.background == (Background(text="49 euros"), Background(text="rows: 1", kind="tool"))
    (model,) = record.generations
    assert [(message.role, message.text, len(message.tool_requests)) for message in model.prompt] == [
        ("system", "Be brief.", 0),
        ("user", "Fee?", 0),
        ("assistant", "", 1),
        ("tool", "rows: 1", 0),
    ]
    assert record.prompts_seen


def test_a_prompt_may_be_a_text(sink):
    with ragspan.capture(sink=sink) as answer:
        answer.prompt = "Fee?"

    assert sink.records()[0].generations[0].prompt == (Message(role="user", text="Fee?"),)


@pytest.mark.parametrize("prompt", [7, [7], [{"content": "no role"}], {"role": "user"}])
def test_a_prompt_that_is_none_is_logged_and_left_out(sink, prompt, caplog, monkeypatch):
    monkeypatch.setattr(answer, "_log", ThrottledLog())
    with ragspan.capture(sink=sink) as made:
        made.prompt = prompt
        made.background = 7
        made.response = "49 euros"

    (record,) = sink.records()
    assert (record.generations, record.prompts_seen, record.background) == ((), False, ())
    assert "a prompt is a text, or a list of messages with a role and a content" in caplog.text
    assert "background is a sequence of texts" in caplog.text


def test_background_that_handlers_saw_is_added(sink):
    seen = RagRecord(
        question=None,
        contexts=None,
        response="49 euros",
        background=["seen"],
        background_truncated=True,
        contexts_unknown="unmarked_text",
        prompts_seen=True,
        from_model=False,
    )
    with ragspan.capture(question="Fee?", sink=sink) as answer:
        answer.background = ["set"]
        answer.part(sink, lambda: seen, lambda _: None)

    (record,) = sink.records()
    assert [one.text for one in record.background] == ["set", "seen"]
    assert record.background_truncated
    assert (record.contexts_unknown, record.prompts_seen, record.from_model) == ("unmarked_text", True, False)


def part(response, **seen):
    return RagRecord(question=None, contexts=None, response=response, **seen)


def test_of_several_parts_the_last_one_with_a_response_answers(sink):
    """Two frameworks inside one block: a search by one, and then the answer by the other."""
    parts = [
        part("found it", prompts_seen=True, from_model=True),
        part("49 euros", prompts_seen=True, from_model=False),
        part(None, prompts_seen=True),
    ]
    with ragspan.capture(question="Fee?", sink=sink) as answer:
        for seen in parts:
            answer.part(object(), lambda seen=seen: seen, lambda _: None)

    (record,) = sink.records()
    assert (record.response, record.from_model, record.prompts_seen) == ("49 euros", False, True)


@pytest.mark.parametrize("unseen", [0, 1])
def test_a_part_whose_prompts_were_not_all_seen_leaves_those_of_the_block_unseen(sink, unseen):
    with ragspan.capture(question="Fee?", sink=sink) as answer:
        for number in range(2):
            seen = part("49 euros", prompts_seen=number != unseen)
            answer.part(object(), lambda seen=seen: seen, lambda _: None)

    (record,) = sink.records()
    assert record.prompts_seen is False


def test_a_response_that_is_set_by_hand_is_not_said_to_be_a_models_or_nobodys(sink):
    with ragspan.capture(question="Fee?", sink=sink) as answer:
        answer.part(sink, lambda: part("blocked", from_model=False), lambda _: None)
        answer.response = "49 euros"

    (record,) = sink.records()
    assert (record.response, record.from_model) == ("49 euros", None)
