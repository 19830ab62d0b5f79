"""Public programs that search in ways of their own."""

from __future__ import annotations

from langchain_classic.chains import RetrievalQA, create_history_aware_retriever
from langchain_classic.retrievers import (
    ContextualCompressionRetriever,
    MultiVectorRetriever,
    ParentDocumentRetriever,
)
from langchain_classic.retrievers.document_compressors import LLMChainExtractor, LLMChainFilter
from langchain_core.callbacks import dispatch_custom_event
from langchain_core.chat_history import InMemoryChatMessageHistory
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.load import dumps, loads
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.runnables.history import RunnableWithMessageHistory
from langchain_core.stores import InMemoryByteStore, InMemoryStore
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import RecursiveCharacterTextSplitter
from public_programs import program
from rag_programs import (
    ANSWER,
    CHAT_PROMPT,
    FILTER,
    HOSE,
    MOTOR,
    PUMP,
    QUESTION,
    BrokenModel,
    FailingRetriever,
    TopicRetriever,
    answer_chain,
    chat_model,
    documents,
    join_texts,
    rag_chain,
    retriever,
)


class Near(InMemoryVectorStore):
    """A store all of whose documents are relevant."""

    def _similarity_search_with_relevance_scores(self, query, k=4, **_):
        return [(each, 0.5) for each, _ in self.similarity_search_with_score(query, k)]


@program([PUMP, HOSE])
def a_classic_chain_that_fills_its_template_by_itself(config):
    RetrievalQA.from_chain_type(chat_model(), retriever=retriever(PUMP, HOSE)).invoke({"query": QUESTION}, config)


@program([PUMP])
def hypothetical_document(config):
    imagined = "The pump has a warranty of ten years, which begins on the day on which it is first used."
    write = ChatPromptTemplate.from_template("Write a passage that answers: {question}") | chat_model(imagined)
    search = write | StrOutputParser() | retriever(PUMP)
    ({"context": search | join_texts, "question": RunnablePassthrough()} | answer_chain()).invoke(QUESTION, config)


@program([PUMP])
def documents_that_the_program_shows(config):
    def answer(question):
        dispatch_custom_event("found", documents(PUMP))
        return answer_chain().invoke({"context": PUMP, "question": question})

    RunnableLambda(answer).invoke(QUESTION, config)


@program([PUMP, MOTOR])
def rag_fusion_over_generated_queries(config):
    """The ranked lists are fused by what the documents are as JSON."""

    def fuse(lists):
        scores: dict[str, float] = {}
        for found in lists:
            for rank, each in enumerate(found):
                scores[dumps(each)] = scores.get(dumps(each), 0) + 1 / (rank + 60)
        return [
            (loads(text, allowed_objects=[Document]), score)
            for text, score in sorted(scores.items(), key=lambda pair: -pair[1])
        ]

    generate = (
        ChatPromptTemplate.from_template("Four queries for {question}")
        | chat_model("warranty of the pump\npump and motor")
        | StrOutputParser()
        | (lambda text: text.split("\n"))
    )
    chain = generate | TopicRetriever().map() | fuse | (lambda found: join_texts(each for each, _ in found))
    ({"context": chain, "question": RunnablePassthrough()} | answer_chain()).invoke(QUESTION, config)


@program([PUMP, HOSE])
def sub_questions_answered_one_after_the_other(config):
    """The last prompt holds what the earlier calls answered."""
    prompt = ChatPromptTemplate.from_template(
        "Question: {question}\nEarlier pairs:\n{pairs}\nContext:\n{context}\nAnswer the question."
    )
    model = chat_model("The pump is covered for three years in all.", ANSWER)

    @RunnableLambda
    def answer(question):
        pairs, reply = "", ""
        for own, text in (("How long is the pump covered?", PUMP), (question, HOSE)):
            found = join_texts(retriever(text).invoke(own))
            reply = (prompt | model | StrOutputParser()).invoke({"question": own, "pairs": pairs, "context": found})
            pairs += f"\nQuestion: {own}\nAnswer: {reply}\n"
        return reply

    answer.invoke(QUESTION, config)


@program(["warranty of three years"])
def extracts_by_a_model(config):
    model = chat_model("warranty of three years", "NO_OUTPUT")
    source = ContextualCompressionRetriever(
        base_compressor=LLMChainExtractor.from_llm(model), base_retriever=retriever(PUMP, FILTER)
    )
    rag_chain(source).invoke(QUESTION, config)


@program([MOTOR])
def documents_filtered_by_a_model(config):
    keeps_the_motor = RunnableLambda(lambda prompt: "YES" if MOTOR in prompt.to_string() else "NO")
    source = ContextualCompressionRetriever(
        base_compressor=LLMChainFilter.from_llm(keeps_the_motor), base_retriever=retriever(PUMP, MOTOR)
    )
    rag_chain(source).invoke(QUESTION, config)


@program([f"{PUMP} {FILTER}"])
def the_parents_of_small_chunks(config):
    source = ParentDocumentRetriever(
        vectorstore=InMemoryVectorStore(DeterministicFakeEmbedding(size=8)),
        docstore=InMemoryStore(),
        child_splitter=RecursiveCharacterTextSplitter(chunk_size=40, chunk_overlap=0),
    )
    source.add_documents([Document(f"{PUMP} {FILTER}", metadata={"title": "manual"})])
    rag_chain(source).invoke(QUESTION, config)


@program([PUMP])
def passages_behind_summaries(config):
    source = MultiVectorRetriever(
        vectorstore=Near(DeterministicFakeEmbedding(size=8)),
        byte_store=InMemoryByteStore(),
        id_key="doc_id",
        search_kwargs={"k": 1},
    )
    source.vectorstore.add_documents([Document("About the pump and its warranty.", metadata={"doc_id": "one"})])
    source.docstore.mset([("one", Document(PUMP, metadata={"doc_id": "one"}))])
    rag_chain(source).invoke(QUESTION, config)


@program([PUMP])
def a_model_and_a_search_with_fallbacks(config):
    source = FailingRetriever().with_fallbacks([retriever(PUMP)])
    rag_chain(source, BrokenModel().with_fallbacks([chat_model()])).invoke(QUESTION, config)


@program([MOTOR], question="And its motor?")
def a_history_with_a_question_that_stands_alone(config):
    rewrite = ChatPromptTemplate.from_messages(
        [("system", "Rewrite."), MessagesPlaceholder("chat_history"), ("human", "{input}")]
    )
    source = create_history_aware_retriever(chat_model("How much does the motor draw?"), TopicRetriever(), rewrite)
    chain = RunnablePassthrough.assign(context=source | join_texts) | CHAT_PROMPT | chat_model() | StrOutputParser()
    history = InMemoryChatMessageHistory()
    history.add_user_message(QUESTION)
    history.add_ai_message("It is seven years, as I recall from the manual of the pump.")
    kept = RunnableWithMessageHistory(
        chain, lambda _: history, input_messages_key="input", history_messages_key="chat_history"
    )
    kept.invoke({"input": "And its motor?"}, {**config, "configurable": {"session_id": "one"}})
