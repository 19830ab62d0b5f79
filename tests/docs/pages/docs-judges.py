from langchain_core.language_models.fake_chat_models import FakeListChatModel
from reader_program import make_index, question, texts

import ragspan

chat_model = FakeListChatModel(responses=["fine"])
make_index()  # sets the framework's model


def after_block():
    """A judge that cannot be asked shows in the errors of its outcomes."""
    with ragspan.capture(question=question) as answer:
        answer.contexts = texts
        answer.response = texts[0]
    assert ragspan.default_engine().flush(timeout=30)
    assert ragspan.default_engine().stats().finished >= 1
