"""Small judges by name, behind real servers that reply as the models' cards say."""

from __future__ import annotations

import json

import pytest

from ragspan.exceptions import ConfigurationError
from ragspan.judges import named_judge
from ragspan.judges.session import JudgingSession, judging
from ragspan.metrics import Completeness, ContextAdherence, Faithfulness
from ragspan.outcomes import MetricFailure, NotApplicable
from ragspan.records import RagRecord

CLAIMS = ["The Nile ends in Egypt.", "It is 900 km long."]
DOCUMENT = "The Nile ends in Egypt.\n\nIt is 6650 km long."


@pytest.fixture
def record():
    return RagRecord(
        question="Where does it end?",
        contexts=["The Nile ends in Egypt.", " ", "It is 6650 km long."],
        response=" ".join(CLAIMS),
    )


@pytest.fixture
def named(fake_openai):
    """Makes the judge of a name and the server's address."""

    def make(kind, path="/v1", **options):
        return named_judge(f"{kind}:{fake_openai.url}{path}", max_retries=0, **options)

    return make


def replies(fake_openai, by_claim, usage=None):
    """Replies with the first text whose key stands in the request."""

    def answer(request):
        asked = json.dumps(request["messages"])
        return fake_openai.says(next(text for key, text in by_claim.items() if key in asked), usage=usage)

    fake_openai.answer = answer


def marks(fake_openai, **words):
    def answer(request):
        text = request["answer"]
        places = {word: text.find(word) for word in words if word in text}
        spans = [
            {"start": at, "end": at + len(word), "text": word, "hallucination_score": words[word]}
            for word, at in places.items()
        ]
        return 200, {"predictions": spans}

    fake_openai.answer = answer


async def test_lettucedetects_server_marks_parts_of_all_claims_in_one_request(named, fake_openai, record):
    marks(fake_openai, **{"900 km": 0.94})
    judge = named("lettucedetect", path="")

    verdicts = await judge.verify_claims(record, CLAIMS)

    assert [(one.supported, one.probability, one.explanation) for one in verdicts] == [
        (True, None, "nothing is marked in it"),
        (False, pytest.approx(0.06), '"900 km" is marked as unsupported with a probability of 0.94'),
    ]
    assert (fake_openai.paths, judge.name) == (["/v1/lettucedetect/spans"], "lettucedetect")
    [request] = fake_openai.requests
    assert request == {
        "contexts": [record.contexts[0].text, record.contexts[2].text],
        "question": "Where does it end?",
        "answer": " ".join(CLAIMS),
    }


async def test_the_generative_form_quotes_parts_at_an_address_of_openais_protocol(named, fake_openai, record):
    spans = [{"text": "900 km", "category": "contradiction", "subcategory": "numerical"}]
    replies(fake_openai, {"": f"```json\n{json.dumps({'hallucinated_spans': spans})}```"})
    judge = named("lettucedetect", system="As the card has it.")

    assert [one.supported for one in await judge.verify_claims(record, CLAIMS)] == [True, False]
    asked = f"Where does it end?\n\n{DOCUMENT}\n\nAnswer to verify:\n{' '.join(CLAIMS)}"
    messages = [{"role": "system", "content": "As the card has it."}, {"role": "user", "content": asked}]
    model = "KRLabsOrg/lettucedect-v2-qwen-2b"
    assert fake_openai.requests == [{"messages": messages, "model": model, "temperature": 0.0}]


@pytest.mark.parametrize("reply", ["nothing", '{"hallucinated_spans": [{"text": "not in the answer"}]}'])
async def test_what_cannot_be_read_is_no_verdict(named, fake_openai, record, reply):
    replies(fake_openai, {"": reply})

    outcome = await Faithfulness(named("lettucedetect")).score(record)

    assert isinstance(outcome, MetricFailure)
    assert outcome.error_type == "missing_verdicts"


async def test_minicheck_is_asked_about_a_document_and_each_claim(named, fake_openai, record):
    replies(fake_openai, {"Egypt.\\nIt": "no", "Claim: The Nile": "Yes", "Claim: It": "No"})
    judge = named("minicheck")

    score = await Faithfulness(judge, threshold=0.5).score(record)

    assert (score.value, score.judge) == (0.5, "minicheck:bespoke-minicheck")
    message = {"role": "user", "content": f"Document: {DOCUMENT}\nClaim: {CLAIMS[0]}"}
    request = {"messages": [message], "max_tokens": 32, "model": "bespoke-minicheck", "temperature": 0.0}
    assert (request in fake_openai.requests, len(fake_openai.requests)) == (True, 2)  # both at once, in either order
    adherence = await ContextAdherence(judge).score(record)
    assert (adherence.value, adherence.label) == (0.0, "fail")


@pytest.mark.parametrize("form", ["<score> {} </score>", '{{"score": "{}"}}'])
@pytest.mark.parametrize(("score", "supported"), [("yes", False), ("no", True)])
async def test_granite_guardian_says_yes_where_text_is_not_grounded(named, fake_openai, record, form, score, supported):
    replies(fake_openai, {"": form.format(score)}, usage={"prompt_tokens": 7, "completion_tokens": 3})

    meter = []
    with judging(JudgingSession(meter=meter)):
        [verdict] = await named("granite-guardian").verify_claims(record, CLAIMS[:1])

    assert verdict.supported is supported
    assert [(used.requests, used.input_tokens) for used in meter] == [(1, 7)]
    [request] = fake_openai.requests
    said = (("user", "Where does it end?"), ("assistant", CLAIMS[0]))
    assert request == {
        "messages": [{"role": role, "content": text} for role, text in said],
        "documents": [{"doc_id": str(at), "text": text} for at, text in enumerate(DOCUMENT.split("\n\n"))],
        "chat_template_kwargs": {"guardian_config": {"criteria_id": "groundedness"}, "think": False},
    } | {"max_tokens": 32, "model": "ibm-granite/granite-guardian-3.3-8b", "temperature": 0.0}


async def test_another_language_is_not_judged(named, fake_openai):
    german = RagRecord(
        question="Wo?",
        contexts=["Der Nil endet in Ägypten, und er ist sehr lang."],
        response="Der Nil endet nach einem sehr langen Weg in Ägypten.",
    )

    outcome = await ContextAdherence(named("minicheck")).score(german)

    assert isinstance(outcome, NotApplicable)
    assert outcome.reason == "language"
    assert fake_openai.requests == []


async def test_a_server_that_is_down_and_one_that_says_something_else_are_failures(named, fake_openai, record):
    fake_openai.answer = lambda _: fake_openai.fails(503, "loading")
    assert (await Faithfulness(named("minicheck")).score(record)).outage

    fake_openai.answer = lambda _: (200, {"predictions": [{"start": 0, "end": 3, "hallucination_score": 7}]})
    outcome = await Faithfulness(named("lettucedetect", path="")).score(record)
    said = "the server's answer holds no spans with scores from 0 to 1"
    assert outcome == MetricFailure(error_type="InvalidResponse", message=said, outage=True)


def test_what_a_small_judge_cannot_answer_is_an_error_at_start(named):
    with pytest.raises(ConfigurationError, match="answers adherence and faithfulness alone: leave completeness out"):
        Completeness(named("granite-guardian"))
    with pytest.raises(ConfigurationError, match="'minicheck:http://localhost:11434/v1'"):
        named_judge("minicheck")
    with pytest.raises(ConfigurationError, match="unexpected keyword argument 'temperature'"):
        named("minicheck", temperature=1)
