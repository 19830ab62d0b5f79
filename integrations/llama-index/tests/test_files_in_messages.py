"""Documents that the program hands to the model as blocks: their text is read, or it is unknown what reached the model."""

import base64

import pytest
from captures import Answered
from li_programs import ANSWER, PASSAGES, QUESTION, retriever
from li_workflows import one_step
from llama_index.core import Settings
from llama_index.core.base.llms.types import CitableBlock
from llama_index.core.llms import ChatMessage, DocumentBlock, ImageBlock, TextBlock

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def as_text(text: str, **about: str) -> DocumentBlock:
    return DocumentBlock(data=text.encode(), **{"document_mimetype": "text/plain", **about})


def cited(text: str) -> CitableBlock:
    return CitableBlock(title="Book", source="shelf", content=[as_text(text)])


async def asked_with(*blocks):
    """A workflow that finds two passages and hands these blocks to its model, with the question."""

    async def answer(event):
        await retriever("cello", "harp").aretrieve(event.query)
        message = ChatMessage(role="user", blocks=[*blocks, TextBlock(text=event.query)])
        return (await Settings.llm.achat([message])).message.content

    return await one_step(answer).run(query=QUESTION)


TEXTS = [PASSAGES["cello"], PASSAGES["harp"]]


@pytest.mark.parametrize(
    "blocks",
    [
        [as_text(text) for text in TEXTS],
        [as_text(TEXTS[0]), TextBlock(text=TEXTS[1])],
        [cited(TEXTS[0]), as_text(TEXTS[1])],
        [CitableBlock(title="Book", source="shelf", content=[TextBlock(text=TEXTS[0]), as_text(TEXTS[1])])],
        [as_text(TEXTS[0], document_mimetype="text/markdown"), DocumentBlock(data=TEXTS[1].encode())],
    ],
    ids=["alone", "beside a text", "to be cited", "to be cited, beside a text", "of other types"],
)
async def test_the_text_of_a_document_in_a_block_is_read(captured, blocks):
    await asked_with(*blocks)

    assert captured.answers() == [Answered(QUESTION, TEXTS, ANSWER)]


@pytest.mark.parametrize(
    "block",
    [
        DocumentBlock(data=b"%PDF-1.7 \xe2\xe3\xcf\xd3", document_mimetype="application/pdf"),
        DocumentBlock(url="https://example.org/manual.txt", document_mimetype="text/plain"),
        ImageBlock(image=PIXEL),
        CitableBlock(title="Book", source="shelf", content=[ImageBlock(image=PIXEL)]),
    ],
    ids=["PDF", "elsewhere", "a picture", "a picture to be cited"],
)
@pytest.mark.parametrize("beside", [[], [TextBlock(text=TEXTS[0])]], ids=["alone", "beside a text"])
async def test_what_cannot_be_read_leaves_the_contexts_unknown(captured, block, beside):
    await asked_with(block, *beside)

    (record,) = captured.records()
    assert (record.contexts, record.contexts_unknown, record.prompts_seen) == (None, "picture", False)
