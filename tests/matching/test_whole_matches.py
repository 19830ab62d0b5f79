"""Where exactly texts are found in prompts of many forms, and what is said of them.

After a change that is meant: `WRITE_RECORDS=1 python -m pytest tests/matching/test_whole_matches.py`, and read the difference.
"""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import pytest
from whole_records import WholeRecords

from ragspan.matching import PromptTexts

WHOLE = WholeRecords(Path(__file__).with_name("whole_matches.json"))
PUMP = "The pump carries a warranty of three years from the date of purchase, which covers the motor, the seals and the housing."
FILTER = "Filters are rinsed by hand once a month and dried in the shade; a filter that is torn is replaced."
HOSE = "Spare hoses are ordered through the service desk in Lyon."
SHORT = "Open at nine."
TEXTS = [PUMP, FILTER, HOSE, SHORT]


def cut(text, share):
    return text[: int(len(text) * share)]


CHANGES = {
    "as it is": str,
    "cut": lambda text: f"{cut(text, 0.6)}...",
    "cut within a word": lambda text: cut(text, 0.5),
    "the end": lambda text: f"... {text[len(text) // 2 :]}",
    "the middle": lambda text: text[len(text) // 4 : -len(text) // 4],
    "without the middle": lambda text: f"{cut(text, 0.35)} [...] {text[int(len(text) * 0.7) :]}",
    "masked at the beginning": lambda text: f"[NAME] {text.partition(' ')[2]}",
    "masked at the end": lambda text: f"{text.rpartition(' ')[0]} <REDACTED>",
    "masked inside": lambda text: text.replace("three", "***").replace("month", "[DATE]").replace("service", "XXXX"),
    "in capitals": str.upper,
    "in lines of a few words": lambda text: textwrap.fill(text, 17),
    "with other marks": lambda text: text.replace(",", " -").replace(";", " |").rstrip("."),
    "with words between": lambda text: text.replace(" of ", " (see page 3) of ").replace(" and ", " and, as we said, "),
    "with a long remark inside": lambda text: text.replace(" the ", f" {'note ' * 30}the ", 1),
    "twice": lambda text: f"{text}\n{text}",
    "as JSON": lambda text: json.dumps({"text": text.replace("hand", "\u201chand\u201d")}),
    "a few words": lambda text: " ".join(text.split()[:5]),
}
FORMS = {
    "alone": lambda shown: [shown[0]],
    "one after the other": lambda shown: ["Use this:\n\n" + "\n\n".join(shown) + "\n\nQuestion: how long?"],
    "in reverse, in parts": lambda shown: ["Be brief.", *reversed(shown), "How long?"],
    "without the first": lambda shown: ["\n---\n".join(shown[1:])],
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("form", FORMS)
def test_where_texts_are_found(change, form):
    parts = FORMS[form](list(map(CHANGES[change], TEXTS)))
    prompts = PromptTexts(parts)
    matches = [[list(match) for match in own] for own in prompts.find(TEXTS)]
    for text, own in zip(TEXTS, matches, strict=True):
        for match in own:
            match[-1] = "" if match[-1] == text else match[-1]
    known, found = WHOLE.told(f"{change}, {form}", [*matches, prompts.is_complete])

    assert found == known


@pytest.mark.parametrize("apart", [HOSE, f"{SHORT} {HOSE}", SHORT, "How long?", ""])
@pytest.mark.parametrize("options", [{}, {"silent": [1]}, {"quoting": [1]}, {"silent": [0], "quoting": [1]}], ids=str)
def test_the_words_apart_and_parts_of_others(apart, options):
    parts = [f"{PUMP}\n{SHORT} {HOSE}", f"{HOSE} {FILTER} {cut(PUMP, 0.7)}", f"How long? {SHORT} {HOSE}"]
    prompts = PromptTexts(parts, apart=apart, **options)
    matches = [[list(match)[:4] for match in own] for own in prompts.find(TEXTS)]
    known, found = WHOLE.told(f"{apart}, {options}", [matches, [bytes(each).hex()[1::2] for each in prompts.marks]])

    assert found == known
