"""One turn of a conversation is one request; its question is what the user said, not what was made of it."""

from __future__ import annotations

import pytest
from captures import Answered
from li_chats import CONDENSING_MODES, SEARCHING_MODES, chat_engine
from li_programs import ANSWER, CELLO, OBOE

SAID = "Tell me about the cello."
AGAIN = "And the other one?"
CONDENSED = "What is an oboe?"

COMPLETE = Answered(SAID, [CELLO], ANSWER)


each_way = pytest.mark.parametrize("way", ["chat", "achat"])


async def chatted(conversation, text, way, **options):
    """One turn of a conversation, in one of the ways."""
    said = getattr(conversation, way)(message=text, **options)
    return await said if way == "achat" else said


@each_way
@pytest.mark.parametrize("mode", SEARCHING_MODES)
async def test_a_turn(captured, mode, way):
    await chatted(chat_engine(mode), SAID, way)

    assert captured.answers() == [COMPLETE]


# What the user means


@each_way
@pytest.mark.parametrize("mode", CONDENSING_MODES)
async def test_a_second_turn_is_condensed_for_the_search(captured, model, mode, way):
    model.says(ANSWER, CONDENSED, "Of cane.")
    conversation = chat_engine(mode)
    await chatted(conversation, SAID, way)
    await chatted(conversation, AGAIN, way)

    first, second = captured.records()
    assert Answered.of(first) == COMPLETE
    assert Answered.of(second) == Answered(AGAIN, [OBOE], "Of cane.")
    assert {search.query for search in second.retrievals} == {CONDENSED}
