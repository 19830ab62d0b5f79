"""What the application's own function is run over, and what becomes of text where it fails."""

import dataclasses
import re
import typing

import pytest

from ragspan import ConfigurationError, RagRecord
from ragspan.engine.redaction import RedactionError, redact_from, redacted, withheld
from ragspan.judges.judge_protocols import ClaimVerdict, Vote
from ragspan.messages import ErrorReport, Message, ToolRequest
from ragspan.metrics import JudgedContext
from ragspan.outcomes import Cause, MetricFailure, NotApplicable, Score
from ragspan.records import Background, Generation, Reranking, Retrieval, RetrievedContext, SpanAnchor, ToolCall

SECRET = "anna@example.org"
KEPT = set(
    re.findall(
        r"\w+",
        "call_id data_source_id error_type finish_reason framework id model name provider record_id response_id"
        " response_model role run_id status swallowed_errors tool_call_id tool_name type",
    )
)
NESTED = (RetrievedContext, Retrieval, Reranking, Generation, ToolCall, Message, ToolRequest, ErrorReport)


def mask(text):
    return text.replace(SECRET, "[e-mail]")


async def mask_later(text):
    return text


def whole_of(kind):
    """One of this kind with the secret in every text, whatever fields it has."""
    types = typing.get_type_hints(kind)
    values = {}
    for field in dataclasses.fields(kind):
        shown = str(types[field.name])
        nested = next((one for one in NESTED if one.__name__ in shown), None)
        if nested is not None:
            values[field.name] = (whole_of(nested),) if "tuple" in shown else whole_of(nested)
        elif "Mapping" in shown:
            values[field.name] = {"author": SECRET, "nested": [{"deep": SECRET}], "page": 4}
        elif "tuple[str" in shown and field.name != "swallowed_errors":
            values[field.name] = (f"of {SECRET}",)
        elif ("str" in shown and "Literal" not in shown) and field.name not in KEPT:
            values[field.name] = f"{field.name} of {SECRET}"
        elif field.name.endswith("_ns"):
            values[field.name] = 1
    required = {
        field.name: None
        for field in dataclasses.fields(kind)
        if field.default is field.default_factory is dataclasses.MISSING
    }
    names = {name: name for name in ("name",) if name in required}
    return kind(**{**required, **names, **values})


def test_every_text_of_a_record_is_redacted_also_of_fields_that_are_new():
    record = whole_of(RagRecord)

    made = redacted(record, mask)

    assert repr(record).count(SECRET) >= 20
    assert SECRET not in repr(made)
    assert made.question == "question of [e-mail]"
    assert made.retrievals[0].contexts[0].metadata == {
        "author": "[e-mail]",
        "nested": [{"deep": "[e-mail]"}],
        "page": 4,
    }


RUN = "0f0e1111-2222-4333-8444-555566667777"


@dataclasses.dataclass(frozen=True)
class Finding:
    """Evidence of a metric of the application's: its fields have the names of ragspan's, and hold texts."""

    quote: str = SECRET
    reason: str = SECRET
    label: str = SECRET
    name: str = SECRET
    id: str = SECRET
    kind: str = SECRET
    judge: str = SECRET
    status: str = SECRET
    nested: tuple = (SECRET, {"reason": SECRET})


def test_no_redactor_changes_an_id():
    record = RagRecord(
        question="q 1234",
        contexts=[RetrievedContext(text="c 1234", id="doc-1234", metadata={"page 1234": 1234})],
        response="r 1234",
        record_id="record-1234",
        run_id=RUN,
        parent=SpanAnchor(trace_id=1234, span_id=5678),
        retrievals=(Retrieval(name="r", query="q 1234", started_ns=1, ended_ns=1, tool_call_id="call-1234"),),
        generations=(Generation(model="m-1234", provider="p-1234", started_ns=1, ended_ns=1),),
        tool_calls=(ToolCall(name="t-1234", call_id="call-1234", started_ns=1, ended_ns=1),),
        swallowed_errors=("E1234",),
        background=[Background(text="b 1234", kind="tool")],
        user_id="user-1234",
    )

    made = redacted(record, lambda text: re.sub(r"\d", "#", text))

    assert (made.run_id, made.record_id, made.parent) == (record.run_id, record.record_id, record.parent)
    assert (made.generations, made.tool_calls) == (record.generations, record.tool_calls)
    assert made.swallowed_errors == record.swallowed_errors
    assert (made.contexts[0].id, made.retrievals[0].tool_call_id) == ("doc-1234", "call-1234")
    assert (made.question, made.contexts[0].metadata, made.background[0].text) == (
        "q ####",
        {"page ####": 1234},
        "b ####",
    )
    assert (made.background[0].kind, made.user_id) == ("tool", "user-####")


def test_every_text_of_a_class_of_the_applications_is_redacted_whatever_its_field_is_called():
    made = redacted(Score(value=0.5, evidence=(Finding(),)), mask)

    assert SECRET not in repr(made)
    assert made.evidence[0].nested == ("[e-mail]", {"reason": "[e-mail]"})


def test_ragspans_own_words_stay():
    outcomes = [
        NotApplicable(reason="no_contexts"),
        MetricFailure(error_type="openai.APITimeoutError", message=""),
        Score(value=0.5, threshold=0.1, judge="openai:m", prompt_version="v1", fallback="budget_exhausted"),
        Score(value=0.1, causes=(Cause(kind="cut", search="lookup", step="reranker"),)),
        Score(
            value=0.1,
            evidence=(ClaimVerdict(index=0, verdict="unsupported"), JudgedContext(index=0, id="d", rank=0, value=1)),
        ),
    ]

    assert [redacted(outcome, lambda _: "[hidden]") for outcome in outcomes] == outcomes


def test_the_same_text_is_redacted_once_and_alike():
    seen = []
    passage = RetrievedContext(text="the same")

    made = redacted(
        RagRecord(
            question="the same",
            contexts=[passage],
            response="",
            retrievals=(Retrieval(name="r", query=None, started_ns=1, ended_ns=1, contexts=(passage,)),),
        ),
        lambda text: seen.append(text) or f"{text} {len(seen)}",
    )

    assert seen == ["the same"]
    assert made.contexts[0].text == made.retrievals[0].contexts[0].text == made.question == "the same 1"
    assert made.response == ""


@pytest.mark.parametrize("returned", [None, b"bytes", 5])
def test_what_returns_no_text_has_failed(returned):
    with pytest.raises(RedactionError, match=f"it returned an? {type(returned).__name__}, not a str"):
        redacted(RagRecord(question="q", contexts=None, response=None), lambda _: returned)


@pytest.mark.parametrize("error", [ValueError(SECRET), SystemExit(SECRET), RecursionError(SECRET)])
def test_what_raises_has_failed_and_is_named_by_its_type_only(error):
    def fail(_):
        raise error

    with pytest.raises(RedactionError) as raised:
        redacted(RagRecord(question="q", contexts=None, response=None), fail)

    assert str(raised.value) == type(error).__name__


OUTCOMES = [
    Score(
        value=0.5,
        threshold=0.4,
        explanation=f"says {SECRET}",
        evidence=(ClaimVerdict(index=0, verdict="supported", claim=SECRET), Vote(grounded=True, explanation=SECRET)),
        judge="own",
    ),
    NotApplicable(reason="no_contexts", detail=SECRET),
    MetricFailure(error_type="ValueError", message=SECRET),
]


def test_where_that_fails_they_are_left_out_and_the_score_stays():
    made = [withheld(outcome) for outcome in OUTCOMES]

    assert SECRET not in repr(made)
    assert made[0] == dataclasses.replace(OUTCOMES[0], explanation=None, evidence=())
    assert made[1] == NotApplicable(reason="no_contexts")
    assert made[2] == MetricFailure(error_type="ValueError", message="the message could not be redacted")


def test_the_environment_names_a_function_and_false_overrules_it(monkeypatch):
    monkeypatch.setenv("RAGSPAN_REDACT", f"{__name__}:mask")

    assert redact_from(None)(SECRET) == "[e-mail]"
    assert redact_from(False) is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (5, "redact is of type int, but should be a function that takes a text and returns one"),
        (mask_later, "redact is an async function, but should be a function"),
        ("mask", r"^redact \(RAGSPAN_REDACT\) is 'mask', but should be module:function, such as 'privacy:mask'"),
        ("no_such_module:mask", "'no_such_module:mask', which cannot be imported: ModuleNotFoundError"),
        (f"{__name__}:unmask", "which cannot be imported: AttributeError: .* has no attribute 'unmask'"),
        (f"{__name__}:SECRET", "which is of type str, but should be a function"),
    ],
)
def test_a_wrong_one_is_refused_in_plain_words(given, message):
    with pytest.raises(ConfigurationError, match=message):
        redact_from(given)
