"""A context is the node as the model saw it, at the moment when it did."""

from __future__ import annotations

import pytest
from li_programs import CELLO, HARP, QUESTION, FixedRetriever, engine_over, found, ids
from llama_index.core import get_response_synthesizer
from llama_index.core.schema import MediaResource, Node, NodeWithScore, TextNode

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
    ("node", "shown"),
    [
        (TextNode(text=TEXT), TEXT),
        (Node(text_resource=MediaResource(text=TEXT)), TEXT),
        (TextNode(text=TEXT, metadata={"page": 3}), f"page: 3\n\n{TEXT}"),
        (TextNode(text=TEXT, **HIDDEN), f"page: 3\n\n{TEXT}"),
        (TextNode(text=TEXT, **TEMPLATE), f"<{TEXT}> from page=3; part=strings"),
    ],
    ids=["no metadata", "a node of other fields", "metadata", "hidden metadata", "template"],
)
def test_the_text_is_the_one_that_the_model_is_shown(captured, model, node, shown):
    ask_about(node)

    assert captured.answer().contexts == [shown]
    assert shown in model.prompts[-1]


def test_a_node_that_is_given_twice_stands_twice_in_the_prompt(captured):
    same = NodeWithScore(node=TextNode(text=TEXT, id_="same"))
    get_response_synthesizer().synthesize(QUESTION, [same, same])

    assert ids(captured.record().contexts) == ["same", "same"]


def test_a_node_that_the_application_changes_while_it_reads_the_stream(captured):
    nodes = found("cello", "harp")
    stream = engine_over(FixedRetriever(nodes), response_mode="tree_summarize", streaming=True).query(QUESTION)
    nodes[0].node.text = "changed"
    nodes[1].node.metadata.clear()
    nodes.reverse()
    list(stream.response_gen)

    assert captured.answer().contexts == [CELLO, HARP]
