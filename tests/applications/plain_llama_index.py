"""A LlamaIndex program that knows nothing of ragspan, nor of OpenTelemetry."""

from llama_index.core import Document, MockEmbedding, Settings, VectorStoreIndex
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.llms.callbacks import llm_completion_callback

FACT = "Beta settles card payments after midnight."


class OneAnswer(CustomLLM):
    @property
    def metadata(self):
        return LLMMetadata(model_name="one-answer")

    @llm_completion_callback()
    def complete(self, prompt, **_):
        return CompletionResponse(text=FACT)

    @llm_completion_callback()
    def stream_complete(self, prompt, **_):
        yield self.complete(prompt)


Settings.llm = OneAnswer()
Settings.embed_model = MockEmbedding(8)
index = VectorStoreIndex.from_documents([Document(text=FACT)])
index.as_query_engine().query("When are card payments settled?")
