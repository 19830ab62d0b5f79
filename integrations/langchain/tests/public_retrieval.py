"""Public programs that search in ways of their own."""

from __future__ import annotations

import asyncio

from langchain_classic.chains import create_history_aware_retriever
from langchain_classic.retrievers import (
    ContextualCompressionRetriever,
    EnsembleRetriever,
    MultiVectorRetriever,
    ParentDocumentRetriever,
    TimeWeightedVectorStoreRetriever,
)
from langchain_classic.retrievers.document_compressors import LLMChainExtractor, LLMChainFilter
from langchain_core.chat_history import InMemoryChatMessageHistory
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.load import dumps, loads
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, FewShotChatMessagePromptTemplate, MessagesPlaceholder
from langchain_core.runnables import RunnableBranch, RunnableLambda, RunnableParallel, RunnablePassthrough
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
    FixedRetriever,
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


@program([PUMP])
def hypothetical_document(config):
    imagined = "The pump has a warranty of ten years, which begins on the day on which it is first used."
    write = ChatPromptTemplate.from_template("Write a passage that answers: {question}") | chat_model(imagined)
    search = write | StrOutputParser() | retriever(PUMP)
    ({"context": search | join_texts, "question": RunnablePassthrough()} | answer_chain()).invoke(QUESTION, config)


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


@program([PUMP, MOTOR])
def step_back_with_examples(config):
    examples = [{"input": "Could a member of the band arrest people?", "output": "What can a member of the band do?"}]
    shown = FewShotChatMessagePromptTemplate(
        example_prompt=ChatPromptTemplate.from_messages([("human", "{input}"), ("ai", "{output}")]), examples=examples
    )
    step_back = (
        ChatPromptTemplate.from_messages([("system", "Step back."), shown, ("user", "{question}")])
        | chat_model("What is known about the motor?")
        | StrOutputParser()
    )
    prompt = ChatPromptTemplate.from_template("{normal}\n{wider}\nOriginal question: {question}\nAnswer:")
    chain = (
        {
            "normal": RunnableLambda(lambda given: given["question"]) | retriever(PUMP) | join_texts,
            "wider": step_back | TopicRetriever() | join_texts,
            "question": lambda given: given["question"],
        }
        | prompt
        | chat_model()
        | StrOutputParser()
    )
    chain.invoke({"question": QUESTION}, config)


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


@program([PUMP, HOSE, MOTOR, FILTER])
def two_searches_in_an_ensemble_reordered(config):
    source = EnsembleRetriever(retrievers=[retriever(PUMP, MOTOR), retriever(HOSE, FILTER)], weights=[0.6, 0.4])

    def reorder(found):
        return sorted(found, key=lambda each: [PUMP, HOSE, MOTOR, FILTER].index(each.page_content))

    rag_chain(source | reorder).invoke(QUESTION, config)


@program([PUMP])
def the_time_weighted_memory(config):
    source = TimeWeightedVectorStoreRetriever(vectorstore=Near(DeterministicFakeEmbedding(size=8)), k=1)
    source.add_documents([Document(PUMP)])
    rag_chain(source).invoke(QUESTION, config)


@program([PUMP])
def a_model_and_a_search_with_fallbacks(config):
    source = FailingRetriever().with_fallbacks([retriever(PUMP)])
    rag_chain(source, BrokenModel().with_fallbacks([chat_model()])).invoke(QUESTION, config)


@program([PUMP])
def a_search_that_is_tried_again(config):
    tries = iter([ConnectionError("busy"), None])

    def find():
        error = next(tries)
        if error is not None:
            raise error
        return documents(PUMP)

    source = FixedRetriever(result=find).with_retry(wait_exponential_jitter=False, stop_after_attempt=2)
    rag_chain(source).invoke(QUESTION, config)


@program([PUMP])
def sources_beside_the_answer(config):
    answer = RunnablePassthrough.assign(context=lambda given: join_texts(given["context"])) | answer_chain()
    chain = RunnableParallel(context=retriever(PUMP), question=RunnablePassthrough()).assign(answer=answer)
    chain.invoke(QUESTION, config)


@program([PUMP], records=2)
def a_batch_of_questions(config):
    asyncio.run(rag_chain(retriever(PUMP)).abatch([QUESTION, QUESTION], config))


@program([PUMP])
def events_of_a_chain_that_are_read(config):
    async def read():
        return [each async for each in rag_chain(retriever(PUMP)).astream_events(QUESTION, config, version="v2")]

    asyncio.run(read())


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


@program([HOSE])
def a_branch_to_one_of_two_stores(config):
    choose = ChatPromptTemplate.from_template("Which store? {question}") | chat_model("parts") | StrOutputParser()
    branch = RunnableBranch(
        (lambda given: given["store"] == "parts", RunnableLambda(lambda given: given["question"]) | retriever(HOSE)),
        RunnableLambda(lambda given: given["question"]) | retriever(PUMP),
    )
    chain = (
        RunnableParallel(store=choose, question=RunnableLambda(lambda given: given["question"]))
        | RunnablePassthrough.assign(context=branch | join_texts)
        | answer_chain()
    )
    chain.invoke({"question": QUESTION}, config)
