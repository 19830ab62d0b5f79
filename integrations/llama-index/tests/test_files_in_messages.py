"""Documents that the program hands to the model as blocks: it is unknown what reached the model."""

import base64

import pytest
from li_programs import PASSAGES, QUESTION, retriever
from li_workflows import one_step
from llama_index.core import Settings
from llama_index.core.base.llms.types import CitableBlock
from llama_index.core.llms import ChatMessage, DocumentBlock, ImageBlock, TextBlock

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@pytest.mark.parametrize(
    "block",
    [
        DocumentBlock(data=b"The cello has four strings.", document_mimetype="text/plain"),
        DocumentBlock(url="https://example.org/manual.txt", document_mimetype="text/plain"),
        ImageBlock(image=PIXEL),
        CitableBlock(title="Book", source="shelf", content=[TextBlock(text=PASSAGES["cello"])]),
    ],
    ids=["a document", "elsewhere", "a picture", "to be cited"],
)
@pytest.mark.parametrize("beside", [[], [TextBlock(text=PASSAGES["cello"])]], ids=["alone", "beside a text"])
async def test_a_file_in_a_message_leaves_the_contexts_unknown(captured, block, beside):
    async def answer(event):
        await retriever("cello", "harp").aretrieve(event.query)
        message = ChatMessage(role="user", blocks=[block, *beside, TextBlock(text=event.query)])
        return (await Settings.llm.achat([message])).message.content

    await one_step(answer).run(query=QUESTION)

    (record,) = captured.records()
    assert (record.contexts, record.contexts_unknown, record.prompts_seen) == (None, "picture", False)
