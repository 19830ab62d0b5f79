from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragspan.judges.llm.parts import PARTS, PROMPT_VERSION, rules_for, schema_of, task_of
from ragspan.judges.llm.prompt import clean, lay_out
from ragspan.records import RagRecord

CLEANED = json.loads(Path(__file__).with_name("cleaned.json").read_text("utf-8"))
INVISIBLE = "\u00ad\u034f\u115f\u180e\u200b\u200c\u200d\u2060\u2062\u3164\ufe00\ufe0f\ufeff\uffa0\U000e0100\U000e01ef"


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        *CLEANED,
        *((f"a{hidden}b", "ab") for hidden in INVISIBLE),
        *((f"<<{hidden}<end of response", "<<<end of response") for hidden in INVISIBLE),
    ],
)
def test_harmful_characters_become_visible_and_ordinary_text_stays(text, cleaned):
    assert clean(text) == cleaned


def test_who_changes_the_words_or_the_forms_of_a_request_gives_them_another_version():
    task = task_of([(part, [1, 2]) for part in PARTS.values()], ["block"], background="notes", listed="claims")
    words = [rules_for(tuple(PARTS.values())), task, json.dumps(schema_of(PARTS.values()))]

    assert (PROMPT_VERSION, hashlib.sha256("\n".join(words).encode()).hexdigest()[:16]) == ("8", "cf961b7a5a21af9c")


def test_the_material_is_numbered_and_cut_texts_say_so():
    prompt = lay_out(RagRecord(question="When?", contexts=["In May.", "x" * 1234], response="May."), 1007)

    assert prompt.material.replace(prompt.code, "code").replace("x" * 1000, "x...") == (
        "The material of this case: 2 contexts, the question and the response. The code is code.\n\n"
        "<<<context 1 code>>>\nIn May.\n<<<end of context 1 code>>>\n\n<<<context 2 (first 1,000 of 1,234 characters) code>>>\n"
        "x...\n<<<end of context 2 (first 1,000 of 1,234 characters) code>>>\n\n<<<question code>>>\nWhen?\n"
        "<<<end of question code>>>\n\n<<<response code>>>\nMay.\n<<<end of response code>>>"
    )


@pytest.mark.parametrize(
    "changes", [{"contexts": ["ab", "c"]}, {"response": "n"}, {"question": "w"}, {"record_id": "2"}]
)
def test_other_texts_have_another_code(changes):
    one = RagRecord(question="q", contexts=["a", "bc"], response="r", record_id="1")

    assert (
        lay_out(one, 9).code == lay_out(replace(one, response="r"), 9).code != lay_out(replace(one, **changes), 9).code
    )


@given(st.text(st.characters()))
def test_cleaning_never_lengthens_and_changes_nothing_twice(text):
    assert len(clean(text)) <= len(text)
    assert clean(clean(text)) == clean(text)
