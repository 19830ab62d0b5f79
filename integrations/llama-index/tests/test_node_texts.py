"""A context is the node as the model saw it, at the moment when it did."""

from __future__ import annotations

import pytest
from captures import Answered
from li_programs import (
    ANSWER,
    CELLO,
    HARP,
    QUESTION,
    FixedRetriever,
    engine,
    engine_over,
    found,
    ids,
    several_kinds_of_content,
)
from llama_index.core import Document, SummaryIndex, get_response_synthesizer
from llama_index.core.schema import ImageNode, IndexNode, NodeRelationship, NodeWithScore, TextNode

TEXT = "The cello has four strings."


def ask_about(*nodes, **options):
    return engine_over(FixedRetriever([NodeWithScore(node=node, score=1.0) for node in nodes]), **options).query(
        QUESTION
    )


HIDDEN = {"metadata": {"page": 3, "key": "secret"}, "excluded_llm_metadata_keys": ["key"]}
TEMPLATE = {
    "metadata": {"page": 3, "part": "strings"},
    "text_template": "<{content}> from {metadata_str}",
    "metadata_template": "{key}={value}",
    "metadata_seperator": "; ",
}


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        ({}, TEXT),
        ({"metadata": {"page": 3}}, f"page: 3\n\n{TEXT}"),
        (HIDDEN, f"page: 3\n\n{TEXT}"),
        (TEMPLATE, f"<{TEXT}> from page=3; part=strings"),
    ],
    ids=["no metadata", "metadata", "hidden metadata", "template"],
)
def test_the_text_is_the_one_that_the_model_is_shown(captured, model, fields, shown):
    ask_about(TextNode(text=TEXT, **fields))

    assert captured.answer().contexts == [shown]
    assert shown in model.prompts[-1]


def test_a_document_used_as_a_node(captured):
    ask_about(Document(text=TEXT, id_="manual", metadata={"page": 3}))

    record = captured.record()
    assert Answered.of(record) == Answered(QUESTION, [f"page: 3\n\n{TEXT}"], ANSWER)
    assert ids(record.contexts) == ["manual"]


def test_an_index_node(captured):
    ask_about(IndexNode(text=TEXT, index_id="elsewhere", id_="pointer"))

    assert captured.answer().contexts == [TEXT]


def test_a_picture_with_a_text(captured):
    ask_about(ImageNode(text="A cello, leaning on a chair.", image_url="https://example.org/cello.png", id_="picture"))

    record = captured.record()
    assert [context.text for context in record.contexts] == ["A cello, leaning on a chair."]
    assert ids(record.contexts) == ["picture"]


@several_kinds_of_content
def test_a_picture_without_a_text(captured, model):
    """A multimodal synthesizer sends pictures; nobody can read what the answer rests on."""
    picture = ImageNode(image=b"aGVsbG8=", image_mimetype="image/png", id_="picture")
    synthesizer = get_response_synthesizer(multimodal=True)
    synthesizer.synthesize(QUESTION, [NodeWithScore(node=picture, score=0.5)])

    record = captured.record()
    assert (record.question, record.response, record.status) == (QUESTION, ANSWER, "complete")
    assert (record.contexts, record.contexts_unknown) == (None, "picture")


@several_kinds_of_content
def test_a_multimodal_answer_from_texts(captured):
    get_response_synthesizer(multimodal=True).synthesize(QUESTION, found("cello", "harp"))

    assert captured.answers() == [Answered(QUESTION, [CELLO, HARP], ANSWER)]


def test_a_node_that_is_given_twice_stands_twice_in_the_prompt(captured):
    same = NodeWithScore(node=TextNode(text=TEXT, id_="same"))
    get_response_synthesizer().synthesize(QUESTION, [same, same])

    assert ids(captured.record().contexts) == ["same", "same"]


def test_nodes_without_scores(captured):
    nodes = [TextNode(text=TEXT), TextNode(text="It has a low voice.")]
    engine_over(SummaryIndex(nodes).as_retriever()).query(QUESTION)

    record = captured.record()
    assert [context.text for context in record.contexts] == [TEXT, "It has a low voice."]
    assert [context.score for context in record.contexts] == [None, None]


@pytest.mark.parametrize(
    ("metadata", "source"),
    [
        ({"file_name": "cello.pdf"}, "cello.pdf"),
        ({"url": "https://example.org/cello"}, "https://example.org/cello"),
        ({"source": "handbook"}, "handbook"),
        ({"page": 3}, None),
    ],
)
def test_where_a_node_comes_from(captured, metadata, source):
    ask_about(TextNode(text=TEXT, metadata=metadata))

    (context,) = captured.record().contexts
    assert context.source == source


def test_the_metadata_of_a_node_are_with_its_context(captured):
    ask_about(TextNode(text=TEXT, metadata={"page": 3, "key": "secret"}, excluded_llm_metadata_keys=["key"]))

    (context,) = captured.record().contexts
    assert context.metadata["page"] == 3


def test_a_node_that_the_application_changes_while_it_reads_the_stream(captured):
    nodes = found("cello", "harp")
    stream = engine_over(FixedRetriever(nodes), response_mode="tree_summarize", streaming=True).query(QUESTION)
    nodes[0].node.text = "changed"
    nodes[1].node.metadata.clear()
    nodes.reverse()
    list(stream.response_gen)

    assert captured.answer().contexts == [CELLO, HARP]


def test_a_node_that_belongs_to_a_document(captured):
    node = TextNode(text=TEXT, id_="part")
    node.relationships[NodeRelationship.SOURCE] = Document(text=TEXT, id_="whole").as_related_node_info()
    ask_about(node)

    assert ids(captured.record().contexts) == ["part"]


def test_a_long_text_is_kept_whole(captured):
    text = "The cello has four strings. " * 1000
    engine_over(FixedRetriever([NodeWithScore(node=TextNode(text=text))]), response_mode="no_text").query(QUESTION)

    assert captured.answer().contexts == [text]


def test_the_same_nodes_in_every_answer(captured):
    """A retriever may return the very nodes that it keeps; what one request does to them is that request's."""
    asked = engine("cello")
    asked.query("One?")
    asked.retriever.result[0].node.text = "Rewritten."
    asked.query("Two?")

    assert [answer.contexts for answer in captured.answers()] == [[CELLO], ["book: instruments\n\nRewritten."]]
