"""Every way in which LlamaIndex makes an answer of passages, in an engine and by hand."""

from __future__ import annotations

from functools import partial

import pytest
from captures import Answered
from li_model import calls
from li_programs import ANSWER, CELLO, HARP, QUESTION, answer_of, each_way, engine, found, ids, retriever
from llama_index.core import PromptTemplate, Settings, get_response_synthesizer
from llama_index.core.base.response.schema import Response, StreamingResponse
from llama_index.core.query_engine import CustomQueryEngine
from llama_index.core.response_synthesizers import BaseSynthesizer, CompactAndRefine, Refine
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

COMPLETE = Answered(QUESTION, [CELLO, HARP], ANSWER)
WRITTEN_BY_MODEL = ["compact", "refine", "tree_summarize", "simple_summarize"]
PIECES = f"Response 1: {ANSWER}\n---------------------\nResponse 2: {ANSWER}"


@each_way
@pytest.mark.parametrize("mode", WRITTEN_BY_MODEL)
def test_an_answer_that_the_model_writes(captured, mode, way):
    assert answer_of(partial(engine, response_mode=mode), QUESTION, way) == ANSWER
    assert captured.answers() == [COMPLETE]


class ByHand:
    """A synthesizer that is asked as an engine is."""

    def __init__(self, nodes, **options):
        self.nodes = nodes
        self.synthesizer = get_response_synthesizer(**options)

    def query(self, question):
        return self.synthesizer.synthesize(question, nodes=self.nodes)

    async def aquery(self, question):
        return await self.synthesizer.asynthesize(query=QueryBundle(question), nodes=self.nodes)


@each_way
def test_a_synthesizer_by_hand(captured, way):
    assert answer_of(partial(ByHand, found("cello", "harp")), QUESTION, way) == ANSWER
    assert captured.answers() == [COMPLETE]


@pytest.mark.parametrize(
    ("mode", "answer"),
    [
        ("accumulate", PIECES),
        ("compact_accumulate", f"Response 1: {ANSWER}"),
        ("context_only", f"{CELLO}\n\n{HARP}"),
    ],
)
async def test_an_answer_that_is_put_together(captured, mode, answer):
    assembled = engine(response_mode=mode)
    assert str(assembled.query(QUESTION)) == answer
    await assembled.aquery(QUESTION)

    assert captured.answers() == [Answered(QUESTION, [CELLO, HARP], answer)] * 2


# By hand


def test_a_synthesizer_of_the_applications_own(captured):
    class Joining(BaseSynthesizer):
        def _get_prompts(self):
            return {}

        def _update_prompts(self, prompts):
            pass

        def get_response(self, text_chunks, query_str, **kwargs):
            return f"{len(text_chunks)} passages"

        async def aget_response(self, query_str, text_chunks, **kwargs):
            return self.get_response(text_chunks, query_str)

    Joining(llm=Settings.llm).synthesize(QUESTION, found("cello", "harp"))

    assert captured.answers() == [Answered(QUESTION, [CELLO, HARP], "2 passages")]


def test_an_answer_that_the_model_itself_finds_unsupported_is_left_out(captured, model):
    """With structured answer filtering the model says of each answer whether the passage supports it."""
    model.says(
        calls("StructuredRefineResponse", answer="No idea.", query_satisfied=False),
        calls("StructuredRefineResponse", answer=ANSWER, query_satisfied=True),
    )
    response = Refine(structured_answer_filtering=True).synthesize(QUESTION, found("harp", "cello"))

    assert str(response) == ANSWER
    assert captured.answers() == [Answered(QUESTION, [CELLO], ANSWER)]


def test_texts_of_nodes_given_to_a_synthesizer_without_the_nodes(captured):
    """They are those nodes where a search of this request found them."""

    class Own(CustomQueryEngine):
        def custom_query(self, query_str):
            nodes = retriever("cello", "harp", "oboe").retrieve(query_str)
            text = CompactAndRefine().get_response(query_str, ["one text", nodes[2].text, nodes[0].text])
            return StreamingResponse(iter([text]), response_txt=text)  # as it is when somebody has read it

    Own().query(QUESTION)

    record = captured.record()
    assert (record.response, ids(record.contexts)) == (ANSWER, [None, "oboe", "cello"])
    assert [context.rank for context in record.contexts] == [None, 2, 0]


# What stands between the nodes and the prompt

SECRET = "Write to anna@example.org when a string of the cello breaks at night."
MASKED = SECRET.replace("anna@example.org", "[EMAIL]")


def masked(texts):
    return [text.replace("anna@example.org", "[EMAIL]") for text in texts]


class MaskingCompact(CompactAndRefine):
    def get_response(self, query_str, text_chunks, **given):
        return super().get_response(query_str, masked(text_chunks), **given)


class MaskingByHand(BaseSynthesizer):
    def _get_prompts(self):
        return {}

    def _update_prompts(self, prompts):
        pass

    def get_response(self, query_str, text_chunks, **given):
        return self._llm.complete("\n".join([*masked(text_chunks), query_str])).text

    async def aget_response(self, query_str, text_chunks, **given):
        return self.get_response(query_str, text_chunks, **given)


def with_a_mapping():
    template = PromptTemplate(
        "Use this: {context_str}\n{query_str}",
        function_mappings={"context_str": lambda **given: masked([given["context_str"]])[0]},
    )
    return CompactAndRefine(text_qa_template=template)


@pytest.mark.parametrize("make", [with_a_mapping, MaskingCompact, MaskingByHand])
def test_what_is_masked_before_the_prompt_is_no_context(captured, make):
    nodes = [NodeWithScore(node=TextNode(text=SECRET)), *found("harp")]
    make().synthesize(QUESTION, nodes)

    record = captured.record()
    assert [context.text for context in record.contexts] == [MASKED, HARP]
    assert "anna@" not in str(record)


def test_what_a_synthesizer_with_a_way_of_its_own_writes_into_its_nodes_is_read_at_the_end(captured):
    class Translating(MaskingByHand):
        def synthesize(self, query, nodes, **_):
            nodes[0].node.set_content(HARP)
            return Response(self._llm.complete(f"{nodes[0].node.text} {query}").text)

    Translating().synthesize(QUESTION, [NodeWithScore(node=TextNode(text="La harpe a quarante-sept cordes."))])

    assert [context.text for context in captured.record().contexts] == [HARP]
