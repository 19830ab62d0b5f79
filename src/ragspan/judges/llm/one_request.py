"""The one request that asks all questions about a record: its words, its form and its schema.

The rules and what each part of the reply is about stand in the system message, the same for all records; then the material; then
which parts are wanted. So a provider's cache serves the beginning of each request, and a further request about the record (for polls
that the endpoint did not give, for what could not be read, for claims beyond the first fifteen) begins with the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ragspan.judges.llm import tasks
from ragspan.judges.llm.questionnaire import Question
from ragspan.judges.llm.replies import Form, schema_of

PROMPT_VERSION: Final = "6"
MOST_CLAIMS: Final = 15
"""Of the first request: models lose claims where they have to judge many at once (arXiv 2505.16973)."""


class Section(NamedTuple):
    """One part of the reply."""

    words: str
    shape: str
    tokens: int
    """A reply is expected to take: for each claim or context, where there are several."""
    takes_background: bool = False


def _asked_in(task: str) -> str:
    """What a task asks for, in the same words in both modes."""
    return task.removeprefix("Task: ").partition("\nForm:")[0]


_FINDING = '{"number": ..., "reasoning": "...", "verdict": '
SECTIONS: Mapping[str, Section] = {
    "judged_claims": Section(
        """\
the claims of the response, in its order, and whether each follows from the contexts. A claim is one statement of fact that can be \
checked by itself: take sentences that state several facts apart, and put what they stand for in place of pronouns and references. \
Keep numbers, names, negations and degrees of certainty as the response has them; add nothing, and correct nothing. That the contexts \
do not hold something is a claim, too. Leave out questions, greetings, offers of help, apologies, and advice on where else to look; \
if nothing is left, the list is empty. "supported": the contexts state the claim, or it follows from them. "unsupported": they \
contradict it, or do not say it. "unsure": the material bears on the claim, but is cut short, garbled or ambiguous just where it would \
decide. The reasoning has at most fifteen words. List at most the first 15 claims; "more" is true where the response makes further ones.""",
        '{"claims": [{"claim": "...", "reasoning": "...", "verdict": "supported" or "unsupported" or "unsure"}, ...], "more": false}',
        tokens=70,
        takes_background=True,
    ),
    "claims": Section(tasks.LIST_CLAIMS.partition("Task: list ")[2].partition("\nForm:")[0], '["...", ...]', tokens=20),
    "context_verdicts": Section(
        """\
was each context useful in arriving at the response? "useful": the response conveys something that the context says, or rests upon \
it. "not_useful": the response could have been written just so without it, even if it is on the subject. The reasoning says in at \
most ten words what the context holds of it. One verdict for each context.""",
        f'[{_FINDING}"useful" or "not_useful"}}, ...]',
        tokens=35,
    ),
    "context_relevance": Section(
        """\
what does each context hold in answer to the question, whatever the response says? "full": the context by itself answers the \
question. "partial": it holds a part of the answer, or something that the answer needs. "none": it holds nothing of an answer, even if \
it is on the subject. The reasoning has at most ten words. One verdict for each context.""",
        f'[{_FINDING}"full" or "partial" or "none"}}, ...]',
        tokens=35,
    ),
    "used_sentences": Section(
        """\
which sentences of the contexts went into the response? A block after the material numbers the sentences of each context, as 2.3 for the \
third sentence of context 2, and shows how they begin. A sentence went into the response if the response conveys something that it \
says, or rests upon it. One list of the sentences' numbers (3 for 2.3) for each context, empty if none went into the response.""",
        '[{"number": ..., "reasoning": "...", "sentences": [...]}, ...]',
        tokens=60,
    ),
    "completeness": Section(
        _asked_in(tasks.RATE_COMPLETENESS),
        '{"reasoning": "...", "value": a number from 0 to 1}',
        tokens=80,
    ),
    "answer_relevance": Section(
        _asked_in(tasks.RATE_ANSWER_RELEVANCE),
        '{"reasoning": "...", "value": a number from 0 to 1}',
        tokens=80,
    ),
    "grounding": Section(
        _asked_in(tasks.ADHERENCE),
        '{"reasoning": "...", "verdict": "grounded" or "not_grounded"}',
        tokens=80,
        takes_background=True,
    ),
}
"""By key, in the order of the reply: what is judged one by one comes before what is judged as a whole."""
_HEAD = "The task asks for several parts at once. Judge each by itself, as it is described here, and keep each reasoning to one sentence."


def section_of(question: Question) -> Section:
    """The part that a question is; a question that a metric brings has its own words."""
    known = SECTIONS.get(question.form.key)
    if known is not None:
        return known
    menu = " or ".join(f'"{verdict}"' for verdict in question.menu)
    return Section(question.about, f"[{_FINDING}{menu}}}, ...]", tokens=50, takes_background=False)


def in_order(questions: Iterable[Question]) -> list[Question]:
    """The questions in the order of the reply; those that metrics bring come after what is judged one by one."""
    places = {key: place for place, key in enumerate(SECTIONS)}
    return sorted(questions, key=lambda question: places.get(question.form.key, places["completeness"] - 0.5))


def guide(questions: Iterable[Question]) -> str:
    """What the rules say besides: what each part is about."""
    parts = [f'- "{question.form.key}": {section_of(question).words}' for question in questions]
    return "\n\n".join([_HEAD, *parts])


def task(questions: Sequence[Question], *, listed: str = "") -> str:
    """What stands behind the material: which parts are wanted, and their form.

    Args:
        questions: of this request; all of those that the guide has, or some.
        listed: claims that are listed and judged already, quoted.
    """
    blocks = [question.quoted for question in questions if question.quoted]
    keys = ", ".join(question.form.key for question in questions)
    words = [
        f"Task: reply with the parts {keys}." if len(questions) > 1 else f"Task: reply with the part {keys} alone."
    ]
    words += [
        f"{question.form.key}: exactly one verdict for each of these numbers: {', '.join(map(str, question.numbers))}."
        for question in questions
        if question.numbers
    ]
    if listed:
        blocks.append(listed)
        words.append(
            "The block above has claims of the response that are judged already: list only those that follow them, all of them."
        )
    shapes = ", ".join(f'"{question.form.key}": {section_of(question).shape}' for question in questions)
    return "\n\n".join([*blocks, "\n".join([*words, f'Form: {{"answer": {{{shapes}}}}}'])])


def schema(questions: Iterable[Question]) -> dict[str, Any]:
    forms: tuple[Form[Any], ...] = tuple(question.form for question in questions)
    return schema_of(forms, together=True)


def with_background(quoted_background: str, task: str) -> str:
    """The task with further evidence, which is quoted."""
    return f"""\
{quoted_background}

The block above holds background: other texts that the system was given with the question, such as results of tools, notes \
beside documents, or what earlier turns found. For judged_claims and grounding it is a source like the contexts, and for nothing \
else. It only adds: what follows from the contexts needs nothing of it.

{task}"""
