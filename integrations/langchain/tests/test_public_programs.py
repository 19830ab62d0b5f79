"""The records of programs as the public shows them hold the words of their prompts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import public_graphs  # noqa: F401  (these fill the table)
import public_prompts  # noqa: F401
import public_retrieval  # noqa: F401
import pytest
from captures import Grounded
from public_programs import PROGRAMS
from whole_records import WholeRecords

WHOLE = WholeRecords(Path(__file__).with_name("public_records.json"), "langchain-core")

pytestmark = [
    pytest.mark.filterwarnings("ignore::langchain_core._api.deprecation.LangChainDeprecationWarning"),
    pytest.mark.filterwarnings("ignore::langchain_core._api.beta_decorator.LangChainBetaWarning"),
]


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_record_of_a_public_program(captured, name):
    expected = PROGRAMS[name]
    expected.run(captured.config)

    records = captured.records()
    answers = list(map(Grounded.of, records))
    if name == "notes that are taken side by side":  # in threads: which one begins first is chance
        answers = [replace(one, contexts=sorted(one.contexts, reverse=True)) for one in answers]
    else:
        known, found = WHOLE.expected(name, records)
        assert found == known
    assert answers == [expected.answer] * expected.records
