"""Files that the program hands to the model as blocks: the text of a document is a context, and what cannot be read leaves them unknown."""

import base64

import pytest
from li_programs import PASSAGES, QUESTION, retriever
from li_workflows import one_step
from llama_index.core import Settings
from llama_index.core.base.llms.types import AudioBlock, CitableBlock, VideoBlock
from llama_index.core.llms import ChatMessage, DocumentBlock, ImageBlock, TextBlock

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@pytest.mark.parametrize(
    "block",
    [
        DocumentBlock(data=b"%PDF-1.7 \xff", document_mimetype="application/pdf"),
        DocumentBlock(data=b"\xff\xfe", document_mimetype="text/plain"),
        DocumentBlock(url="https://example.org/manual.txt", document_mimetype="text/plain"),
        ImageBlock(image=PIXEL),
        AudioBlock(audio=b"UklGRg==", format="wav"),
        VideoBlock(url="https://example.org/film.mp4"),
    ],
    ids=["no text", "broken letters", "elsewhere", "a picture", "a sound", "a film"],
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


@pytest.mark.parametrize("beside", [[], [TextBlock(text="Answer in one sentence.")]], ids=["alone", "beside a text"])
@pytest.mark.parametrize(
    "block",
    [
        DocumentBlock(data=PASSAGES["cello"].encode(), document_mimetype="text/plain"),
        CitableBlock(title="Book", source="shelf", content=[TextBlock(text=PASSAGES["cello"])]),
    ],
    ids=["a document", "to be cited"],
)
async def test_the_text_of_a_document_in_a_message_is_a_context(captured, block, beside):
    async def answer(event):
        message = ChatMessage(role="user", blocks=[block, *beside, TextBlock(text=event.query)])
        return (await Settings.llm.achat([message])).message.content

    await one_step(answer).run(query=QUESTION)

    (record,) = captured.records()
    assert [context.text for context in record.contexts] == [PASSAGES["cello"]]
    assert (record.question, record.prompts_seen) == (QUESTION, True)
