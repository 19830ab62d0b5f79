from langchain_core.language_models.fake_chat_models import FakeListChatModel
from reader_program import make_index

chat_model = FakeListChatModel(responses=["fine"])
make_index()  # sets the framework's model
