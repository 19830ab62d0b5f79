from __future__ import annotations

import logging
import math

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

from ragspan.outcomes import MetricFailure, NotApplicable, Score
from ragspan.records import Generation, Retrieval, RetrievedContext, SpanAnchor
from ragspan.telemetry.values import well_formed

any_text = st.lists(st.sampled_from(["\ud800", "\udfff", "\0", "word "]) | st.text(max_size=9), max_size=9).map("".join)
any_time = st.integers(min_value=-(2**65), max_value=2**65)
any_number = st.one_of(st.none(), st.floats(), st.integers())


@given(any_text)
def test_well_formed_text_can_be_encoded_and_keeps_what_was_good(text):
    result = well_formed(text)

    result.encode()
    assert "\0" not in result
    if text.isascii() and "\0" not in text:
        assert result == text


@pytest.mark.parametrize(("text", "formed"), [("\ud83d\ude00!", "\U0001f600!"), ("a\ud800b", "a\ufffdb")])
def test_surrogates_become_the_character_that_they_make_or_are_replaced(text, formed):
    assert well_formed(text) == formed


@given(
    text=any_text,
    times=st.tuples(any_time, any_time, any_time, any_time),
    number=any_number,
    tokens=st.one_of(st.none(), st.integers()),
    ids=st.tuples(st.integers(-1, 2**130), st.integers(-1, 2**66), st.integers(0, 2**33)),
)
@example(text="\ud800 \0", times=(-1, -2, 2**65, 0), number=math.nan, tokens=2**70, ids=(2**130, 5, 2**33))
@example(text="\udfff", times=(5, 9, 8, 6), number=math.inf, tokens=-(2**70), ids=(7, 2**66, 2**33 + 1))
@example(text="word", times=(5, 9, 8, 6), number=0, tokens=0, ids=(7, 8, 2**33 + 1))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_odd_record_fails_at_emission_or_at_encoding(
    caplog, make_telemetry, make_record, answer, text, times, number, tokens, ids
):
    telemetry = make_telemetry()
    context = RetrievedContext(text=text, id=text, score=number)
    record = make_record(
        question=text,
        response=text,
        contexts=(context,),
        name=text,
        framework=text,
        record_id=text,
        session_id=text,
        tags=(text,),
        error_type=text,
        status="error",
        started_ns=times[0],
        ended_ns=times[1],
        parent=SpanAnchor(trace_id=ids[0], span_id=ids[1], trace_flags=ids[2], trace_state=""),
        retrievals=(Retrieval(name=text, query=text, started_ns=times[2], ended_ns=times[3], contexts=(context,)),),
        generations=(
            Generation(
                model=text, provider=text, started_ns=times[3], ended_ns=times[2], first_token_ns=times[0],
                input_tokens=tokens, output_tokens=tokens, finish_reason=text, error_type=text,
            ),
        ),
    )  # fmt: skip
    outcomes = {
        text: Score(value=0.5, explanation=text, judge=text, details={text: number}),
        text + "2": MetricFailure(error_type=text, message=text),
        text + "3": NotApplicable(reason=text),
    }
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        emitter = telemetry.emitter(capture_content=True)
        answer(emitter, record, outcomes)
        answer(emitter, record, outcomes, late=True)
        emitter.shutdown(5)

        encoded = encode_spans(telemetry.spans).SerializeToString()

    assert len(telemetry.spans) >= 6
    assert encoded
    assert [entry.getMessage() for entry in caplog.records] == []
