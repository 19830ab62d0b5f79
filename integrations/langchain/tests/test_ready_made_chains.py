"""The chains that come with LangChain."""

from __future__ import annotations

import pytest
from captures import Answered
from langchain_classic.chains import (
    ConversationalRetrievalChain,
    LLMChain,
    RetrievalQA,
    RetrievalQAWithSourcesChain,
    create_retrieval_chain,
)
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_classic.chains.combine_documents.reduce import ReduceDocumentsChain
from langchain_classic.chains.combine_documents.stuff import StuffDocumentsChain
from langchain_core.language_models import FakeListLLM
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.prompts import PromptTemplate
from rag_programs import (
    ANSWER,
    CHAT_PROMPT,
    FILTER,
    FOUND,
    HOSE,
    MOTOR,
    PUMP,
    QUESTION,
    TopicRetriever,
    chat_model,
    documents,
    retriever,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore::langchain_core._api.deprecation.LangChainDeprecationWarning"),
    pytest.mark.filterwarnings("ignore:The apply_and_parse method is deprecated"),
]

COMPLETE = Answered(QUESTION, FOUND, ANSWER)


class WordCountingModel(GenericFakeChatModel):
    """Counts words as tokens, for chains that have a budget of tokens."""

    def get_num_tokens(self, text: str) -> int:
        return len(text.split())


def scripted(*lines):
    return WordCountingModel(messages=iter([AIMessage(line) for line in lines]))


def retrieval_chain(source=None, model=None, **options):
    return create_retrieval_chain(
        source or retriever(), create_stuff_documents_chain(model or chat_model(), CHAT_PROMPT, **options)
    )


@pytest.mark.parametrize("closed_at", ["It", "It ", "It runs"])
def test_a_retrieval_chain_whose_stream_is_closed(captured, closed_at):
    read = ""
    chunks = retrieval_chain().stream({"input": QUESTION}, captured.config)
    for chunk in chunks:
        read += chunk.get("answer", "")
        if read == closed_at:
            break
    chunks.close()

    assert captured.answers() == [Answered(QUESTION, FOUND, closed_at, "aborted")]


def test_a_documents_prompt_that_shows_only_where_they_come_from(captured):
    layout = PromptTemplate.from_template("page {page}")
    retrieval_chain(document_prompt=layout).invoke({"input": QUESTION}, captured.config)

    assert captured.answers() == [Answered(QUESTION, [], ANSWER)]


def test_a_conversational_chain_that_returns_its_sources_and_its_question(captured):
    program = ConversationalRetrievalChain.from_llm(
        chat_model("How does the hose fit?", ANSWER),
        retriever=TopicRetriever(),
        return_source_documents=True,
        return_generated_question=True,
    )
    program.invoke({"question": "and that one?", "chat_history": [("The pump?", "It is blue.")]}, captured.config)

    assert captured.answers() == [Answered("and that one?", [HOSE], ANSWER)]


# One call for each document


def test_refine_counts_the_documents_of_every_call(captured):
    model = scripted("Two years, it seems.", "Three years, it seems.", ANSWER)
    program = RetrievalQA.from_chain_type(model, chain_type="refine", retriever=retriever())
    program.invoke({"query": QUESTION}, captured.config)

    assert captured.answers() == [COMPLETE]


def test_map_rerank_counts_the_document_that_gave_the_answer(captured):
    """Each document has a call of its own; the answer with the best score is returned, word for word."""
    model = FakeListLLM(responses=["Nothing here.\nScore: 0", f"{ANSWER}\nScore: 95", "Perhaps.\nScore: 20"])
    program = RetrievalQA.from_chain_type(model, chain_type="map_rerank", retriever=retriever())
    program.invoke({"query": QUESTION}, captured.config)

    assert captured.answers() == [Answered(QUESTION, [FILTER], ANSWER)]


def test_summaries_that_are_collapsed_before_they_are_combined(captured):
    def stuff(model, text):
        prompt = PromptTemplate.from_template(text)
        return StuffDocumentsChain(llm_chain=LLMChain(llm=model, prompt=prompt), document_variable_name="text")

    program = ReduceDocumentsChain(
        combine_documents_chain=stuff(scripted(ANSWER), "Answer from these notes: {text}"),
        collapse_documents_chain=stuff(
            scripted("The pump has three years.", "Filters want water.", "The motor needs power."), "Summarise: {text}"
        ),
        token_max=25,
    )
    program.invoke({"input_documents": documents(*FOUND), "question": QUESTION}, captured.config)

    assert captured.answers() == [COMPLETE]


# Answers with more than a text


def test_a_question_answering_chain_that_names_its_sources(captured):
    layout = PromptTemplate.from_template("Content: {page_content}\nSource: {page}")
    program = RetrievalQAWithSourcesChain.from_chain_type(
        FakeListLLM(responses=[f"{ANSWER}\nSOURCES: 0"]),
        retriever=retriever(PUMP, MOTOR),
        chain_type_kwargs={"document_prompt": layout},
    )
    program.invoke({"question": QUESTION}, captured.config)

    answer = captured.answer()
    assert (answer.question, answer.contexts) == (QUESTION, [PUMP, MOTOR])
    assert answer.response.strip() == ANSWER


def test_a_handler_in_the_constructor_of_a_chain_is_that_chains_own(captured):
    """LangChain shows it the chain's own start and end only: neither the search nor the model is observed."""
    program = RetrievalQA.from_chain_type(chat_model(), retriever=retriever(), callbacks=[captured.handler])
    program.invoke({"query": QUESTION})

    answer = captured.answer()
    assert (answer.question, answer.response, answer.status) == (QUESTION, ANSWER, "complete")
