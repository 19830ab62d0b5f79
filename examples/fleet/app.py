"""An application of any kind: it answers, and its answers are scored elsewhere.

Nothing here knows of a broker. `RAGSPAN_SINK=nats://host:4222` has the handler publish what it sees; without it the scores
would be computed in this process.
"""

import time

from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnablePassthrough

from ragspan_langchain import RagspanCallbackHandler

DOCUMENTS = [
    Document("Beta settles card payments after midnight. Refunds of cards take two working days."),
    Document("Gamma sends invoices by registered mail. An invoice is due within 30 days."),
    Document("Delta keeps contracts in the archive in Lisbon for ten years."),
    Document("Alpha stores customer profiles in Postgres and copies them to Oslo every night."),
]
ANSWERS = {  # your model's; some of it is made up
    "When are card payments settled?": "Beta settles card payments after midnight.",
    "How long do refunds of cards take?": "Refunds of cards take two working days.",
    "How are invoices sent?": "Gamma sends invoices by registered mail.",
    "When is an invoice due?": "An invoice is due within 90 days, and reminders cost 15 euros.",
    "Where are contracts kept?": "Delta keeps contracts in the archive in Lisbon.",
    "How long are contracts kept?": "Delta keeps contracts for ten years.",
    "Where are customer profiles stored?": "Alpha stores customer profiles in Postgres.",
    "When are customer profiles copied?": "Alpha copies customer profiles to Oslo every night.",
    "Who settles card payments?": "Beta settles card payments after midnight.",
    "Who sends invoices?": "Epsilon prints the invoices in Zurich.",
    "Who keeps contracts?": "Delta keeps contracts in the archive in Lisbon for ten years.",
    "What does Alpha store?": "Alpha stores customer profiles in Postgres.",
}


class Search(BaseRetriever):
    """Your retriever: the two passages that share most words with the question."""

    def _get_relevant_documents(self, query: str, **_: object) -> list[Document]:
        words = set(query.lower().strip("?").split())
        return sorted(DOCUMENTS, key=lambda one: -len(words & set(one.page_content.lower().split())))[:2]


model = GenericFakeChatModel(messages=map(AIMessage, ANSWERS.values()))
prompt = ChatPromptTemplate.from_template("Context:\n{context}\n\nQuestion: {question}")
chain = {"context": Search(), "question": RunnablePassthrough()} | prompt | model | StrOutputParser()
handler = RagspanCallbackHandler()

for question in ANSWERS:
    print(question, "->", chain.invoke(question, config={"callbacks": [handler]}), flush=True)
    time.sleep(0.1)  # somebody asks again
