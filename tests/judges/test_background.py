"""How judges read background."""

from __future__ import annotations

import pytest

from ragspan.judges import SmallJudge
from ragspan.judges.background import MAX_SHOWN, shown_background
from ragspan.records import Background, RagRecord

FEE = "The annual fee of the silver card is 49 euros."
LONG = "It rained on many days of the year in the harbour. " * 1100


def record(**changes):
    return RagRecord(**({"question": "What?", "contexts": ["Cards are grey."], "response": FEE} | changes))


def test_of_long_background_a_judge_gets_what_the_response_speaks_of():
    background = [Background(text=f"{LONG[:25_000]}{FEE} {LONG[:25_000]}", kind="tool"), Background(text="It rained.")]

    shown = shown_background(record(background=background))

    assert sum(len(one.text) for one in shown) <= MAX_SHOWN
    assert any(FEE in one.text and one.kind == "tool" for one in shown)


@pytest.fixture
def detector(fake_openai):
    """Marks each of the given words that its contexts do not hold."""

    def make(*words):
        def answer(request):
            held, text = " ".join(request["contexts"]), request["answer"]
            spans = [
                {"start": text.find(word), "end": text.find(word) + len(word), "text": word, "hallucination_score": 0.9}
                for word in words
                if word in text and word not in held
            ]
            return 200, {"predictions": spans}

        fake_openai.answer = answer
        return SmallJudge("lettucedetect", fake_openai.url, max_retries=0)

    return make


CLAIMS = ["Cards are grey.", FEE, "Gamma sends letters."]


async def test_a_detector_reads_background_as_further_contexts(detector, fake_openai):
    judge = detector("49 euros", "Gamma")

    verdicts = await judge.verify_claims(record(background=[FEE]), CLAIMS)

    assert [(one.index, one.verdict, one.claim) for one in verdicts] == [
        (0, "supported", CLAIMS[0]),
        (1, "supported", CLAIMS[1]),
        (2, "unsupported", CLAIMS[2]),
    ]
    assert [request["contexts"] for request in fake_openai.requests] == [["Cards are grey.", FEE]]
