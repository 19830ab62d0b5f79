import io
import json
import sys

printed = sys.stdout = io.StringIO()
expected = [["cites_its_contexts", "faithfulness"], [], ["context_adherence"], ["faithfulness"], [], [], ["pass"]]


async def ask_house_model(messages, *, schema, temperature):
    return json.dumps({"answer": {"grounding": {"reasoning": "stated", "verdict": "grounded"}}})


def after_block():
    shown = printed.getvalue()
    for metric in expected.pop(0):
        assert metric in shown, shown
    printed.seek(0)
    printed.truncate()


def at_end():
    assert expected == []
