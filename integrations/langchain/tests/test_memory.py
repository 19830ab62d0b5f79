"""Requests that wait, with metadata of megabytes, stay within the queue's bound."""

from __future__ import annotations

import pytest
from memory import LINUX, assert_bounded, growth_of

pytestmark = [pytest.mark.slow, LINUX]


@pytest.mark.parametrize(
    ("of_document", "of_request"),
    [("metadata(number)", "{}"), ("{}", "metadata(number)")],
    ids=["documents", "request"],
)
def test_of_langchain(of_document, of_request):
    program = f"""
        from langchain_core.documents import Document
        from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
        from langchain_core.messages import AIMessage
        from langchain_core.retrievers import BaseRetriever
        from langchain_core.runnables import RunnableLambda
        from ragspan_langchain import RagspanCallbackHandler

        class Retriever(BaseRetriever):
            def _get_relevant_documents(self, query, *, run_manager):
                number = int(query)
                return [Document(page_content="The fee is 5 euros.", metadata={of_document})]

        engine = waiting_engine()
        model = GenericFakeChatModel(messages=(AIMessage(content="It is 5 euros.") for _ in itertools.count()))
        chain = Retriever() | RunnableLambda(lambda found: found[0].page_content) | model

        def ask(number):
            chain.invoke(str(number), {{"callbacks": [RagspanCallbackHandler(engine)], "metadata": {of_request}}})

        report(ask, engine.stats)
    """

    assert_bounded(growth_of(program))


def test_of_messages_with_blocks_and_calls_without_number():
    program = """
        from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
        from langchain_core.messages import AIMessage, HumanMessage
        from ragspan_langchain import RagspanCallbackHandler

        engine = waiting_engine()
        blocks, calls = ["a block"] * 20_000, [{"name": "find", "args": {}, "id": "1", "type": "tool_call"}] * 20_000
        message, calling = HumanMessage("question"), AIMessage("")
        message.content, calling.tool_calls = blocks, calls
        model = GenericFakeChatModel(messages=(AIMessage(content="It is 5 euros.") for _ in itertools.count()))
        chain = RunnableLambda(lambda question: [message, calling]) | model

        def ask(number):
            chain.invoke(str(number), {"callbacks": [RagspanCallbackHandler(engine)]})

        report(ask, engine.stats)
    """

    assert_bounded(
        growth_of(
            program.replace("engine = ", "from langchain_core.runnables import RunnableLambda\n        engine = ")
        )
    )
