from __future__ import annotations

import gc

import pytest
from captures import Captures


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch):
    """Neither LangSmith nor ragspan is told anything by the environment of the test run."""
    monkeypatch.setenv("LANGSMITH_TRACING", "false")
    for name in ("LANGCHAIN_TRACING_V2", "RAGSPAN_ENABLED", "RAGSPAN_JUDGE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def new_captures(caplog):
    """Makes handlers; when the test is over, none of them may follow a run or have had an error in a callback."""
    made = []

    def make(sink=None):
        made.append(Captures(sink))
        return made[-1]

    yield make
    if any(captures.handler.open_runs for captures in made):
        gc.collect()  # streams that the test dropped in a cycle
    assert [captures.handler.open_runs for captures in made] == [0] * len(made)
    assert [error for captures in made for error in captures.sink.errors] == []
    assert [line.getMessage() for line in caplog.records if line.name.startswith("langchain_core.callbacks")] == []


@pytest.fixture
def captured(new_captures):
    """A handler to call programs with, and the records of what it captured."""
    return new_captures()


# Working state: what the handler does not do yet. An entry whose test passes fails the run.
KNOWN_FAILURES = {
    "test_agents.py::test_a_tool_whose_answer_is_returned_to_the_caller_as_it_is": "a last tool message is no answer",
    "test_answers.py::test_an_answer_inside_a_field": "the answer is looked for in top-level fields only",
    "test_answers.py::test_a_chain_that_only_finds_documents_gives_no_answer": "the question is taken for the answer",
    "test_errors.py::test_a_later_step_that_raises_before_it_has_streamed_anything": "tokens that nobody got",
    "test_formatting.py::test_texts_with_quotes_and_line_breaks[json in json]": "JSON is decoded once only",
    "test_formatting.py::test_texts_with_quotes_and_line_breaks[json for a web page]": "other JSON escapes",
    "test_formatting.py::test_the_last_document_is_left_out[json in json]": "JSON is decoded once only",
    "test_formatting.py::test_the_last_document_is_left_out[json for a web page]": "other JSON escapes",
    "test_formatting.py::test_texts_without_spaces_between_words[json in json-chinese]": "JSON is decoded once only",
    "test_formatting.py::test_texts_without_spaces_between_words[json in json-japanese]": "JSON is decoded once only",
    "test_formatting.py::test_an_excerpt_of_a_form_stands_for_one_document_only[window from the middle]": "shared runs",
    "test_formatting.py::test_an_excerpt_of_a_form_stands_for_one_document_only[tail]": "shared runs of words",
    "test_formatting.py::test_an_excerpt_of_a_form_stands_for_one_document_only[two windows]": "shared runs of words",
    "test_formatting.py::test_an_excerpt_of_a_form_stands_for_one_document_only[two sentences]": "shared runs of words",
    "test_formatting.py::test_an_excerpt_of_a_form_stands_for_one_document_only[ellipsis in the middle]": "shared runs",
    "test_formatting.py::test_an_excerpt_of_a_form_stands_for_one_document_only[lines of a page]": "shared runs of words",
    "test_formatting.py::test_chunks_that_overlap": "a beginning that sticks out of a taken place by a few letters",
    "test_formatting.py::test_a_text_that_is_the_beginning_of_another": "as above",
    "test_functions.py::test_what_a_program_does_in_the_background_after_the_answer": "children of an ignored run",
    "test_given_documents.py::test_a_node_that_finds_nothing": "an empty list in a field is no empty search result",
    "test_graph_inputs.py::test_the_users_message_in_any_form[texts]": "a list of texts as messages",
    "test_graph_inputs.py::test_the_users_message_in_any_form[type]": "messages as dictionaries with `type`",
    "test_graph_inputs.py::test_another_process_resumes_an_agent_that_waits_inside_a_tool": "the tool's name is taken",
    "test_graph_streams.py::test_a_stream_of_updates_that_is_closed_after_the_answer": "the node's output is not used",
    "test_graph_streams.py::test_a_stream_of_updates_that_is_closed_while_a_model_streams_to_nobody": "tokens for nobody",
    "test_graph_streams.py::test_an_invoked_graph_that_fails_while_its_model_streams": "tokens for nobody",
    "test_interruptions.py::test_a_breakpoint_before_the_answer[where0]": "breakpoints are not seen",
    "test_interruptions.py::test_a_breakpoint_before_the_answer[where1]": "breakpoints are not seen",
    "test_prompts.py::test_documents_in_the_question_itself_are_the_users_words": "the question is searched, too",
    "test_retrievers.py::test_a_pipeline_that_cuts_the_documents_makes_new_ones": "as for overlapping chunks",
    "test_unfinished.py::test_a_reader_who_is_cancelled_before_a_later_step_let_anything_through": "tokens nobody got",
}


def pytest_collection_modifyitems(items):
    for item in items:
        reason = KNOWN_FAILURES.get(f"{item.path.name}::{item.name}")
        if reason is not None and item.path.parent.parent.name == "langchain":
            item.add_marker(pytest.mark.xfail(strict=True, reason=reason))
