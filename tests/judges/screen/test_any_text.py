"""What holds for any text, however strange or long."""

from __future__ import annotations

from itertools import chain

from hypothesis import example, given, settings
from hypothesis import strategies as st

from ragspan.exceptions import JudgeError
from ragspan.judges import OverlapJudge
from ragspan.records import RagRecord

# Text with what breaks judges: surrogates, controls, bidirectional and combining marks, pieces of JSON and of refusals.
_PIECES = (
    "\ud800¦\udfff¦\x00¦\u202e¦\u200b¦\u0301¦\xad¦ﬁ¦½¦١٢¦字¦🙂¦İ¦ß¦1:5 pm¦99:99 am¦5 p.m.¦1,000¦0.00¦1st¦per cent¦U.S.¦"
    "n't¦'s¦$¦%¦{\"a\": ¦[¦]¦}¦null¦true¦false¦\"¦\\¦not¦no¦but¦is¦I don't know.¦Sure!¦ ¦\n¦. ¦!¦, ¦- ¦1. ¦tower¦"
    "Tower¦passage"
)
pieces = st.sampled_from(_PIECES.split("¦"))
texts = st.one_of(st.text(max_size=80), st.lists(pieces, max_size=25).map("".join))


async def ask_everything(record):
    """The answers; None where the judge cannot compare, or cannot tell."""
    judge = OverlapJudge()

    async def verify():
        return await judge.verify_claims(record, await judge.extract_claims(record))

    questions = [judge.vote_adherence(record, 2), judge.rate_completeness(record, 2), verify()]
    each = [judge.judge_usefulness(record), judge.rate_context_relevance(record), judge.measure_utilization(record)]
    found = []
    for question in (*questions, *each):
        try:
            found.append(await question)
        except JudgeError as error:
            if error.error_type not in {"language", "cannot_tell"}:
                raise
            found.append(None)
    return found


@given(
    question=st.none() | texts,
    contexts=st.none() | st.lists(texts, max_size=4),
    response=st.none() | texts,
)
@example(question=None, contexts=['{"Open": false, "": null, "a": {"": true}}'], response="It is open, but a is not.")
@example(question=None, contexts=["Add 1⁄2 cup of sugar, not ½ or ١٢."], response="Add no 1⁄2 cup of sugar.")
@example(question="\ud800", contexts=["\ud800"], response="\ud800 tower \udfff.")
@settings(max_examples=150, deadline=None)
async def test_every_question_is_answered_within_its_bounds(question, contexts, response):
    record = RagRecord(question=question, contexts=contexts, response=response)

    votes, ratings, verdicts, chunks, relevance, use = await ask_everything(record)

    assert votes is None or len(votes) == 2
    assert ratings is None or len(ratings) == 2
    assert all(0 <= vote.probability <= 1 and vote.grounded <= (vote.probability >= 0.5) for vote in votes or ())
    assert all(0 <= rating.value <= 1 for rating in ratings or ())
    assert all(0 <= verdict.probability <= 1 for verdict in verdicts or ())
    for of_each in (chunks, relevance, use):
        assert of_each is None or [one.index for one in of_each] == list(range(len(contexts or ())))
    assert all(0 <= rating.value <= 1 for rating in (*(relevance or ()), *(use or ())))
    for verdict in chain.from_iterable(filter(None, (votes, ratings, verdicts, chunks, relevance, use))):
        assert (verdict.explanation or "-").encode()  # an exporter can send it
