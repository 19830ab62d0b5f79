import os

from reader_program import question, texts

import ragspan

os.environ["RAGSPAN_JUDGE_OPTIONS"] = '{"price": [0.15, 0.60]}'  # prices are known at OpenAI's own address alone


def after_block():
    """A judge that cannot be asked shows in the errors of its outcomes."""
    with ragspan.capture(question=question) as answer:
        answer.contexts = texts
        answer.response = texts[0]
    assert ragspan.default_engine().flush(timeout=30)
    assert ragspan.default_engine().stats().done >= 1
