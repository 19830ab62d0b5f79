"""Spans that no instrumentor wrote: `records_of` gives what can be known, and raises nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recorded_spans import load

from ragspan_receiver.readers import records_of
from ragspan_receiver.spans import SpanEvent, TracedSpan

_RECORDED = [span for name in ("langchain", "llama_index") for span in load(f"openinference_{name}")]
_KEYS = sorted(
    {key for span in _RECORDED for key in span.attributes} | {"gen_ai.operation.name", "traceloop.span.kind"}
)
_ids = st.sampled_from([f"{number:016x}" for number in range(6)])
_plain = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=40) | st.binary(max_size=9)
_values = st.recursive(
    _plain, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
)
_kinds = st.sampled_from(["CHAIN", "LLM", "RETRIEVER", "TOOL", "RERANKER", "AGENT", "EVALUATOR"])
_attributes = st.builds(
    lambda attributes, kind: attributes | {"openinference.span.kind": kind},
    st.dictionaries(st.sampled_from(_KEYS), _values | _values.map(lambda value: json.dumps(value, default=str))),
    _kinds | _values,
)
_spans = st.builds(
    TracedSpan,
    trace_id=st.just("0" * 31 + "1") | st.text(max_size=4),
    span_id=_ids,
    parent_id=st.none() | _ids,
    name=st.text(max_size=20),
    start_ns=st.integers(0, 2**64),
    end_ns=st.integers(0, 2**64),
    attributes=_attributes,
    events=st.lists(st.builds(SpanEvent, name=st.just("exception"), time_ns=st.integers(), attributes=_attributes)),
    status_error=st.booleans(),
    status_message=st.text(max_size=20),
    scope=st.sampled_from(["", "openinference.instrumentation.langchain", "openinference.instrumentation.llama_index"]),
)


@pytest.mark.slow
@given(st.lists(_spans, max_size=8))
@settings(deadline=None)
def test_any_spans_are_survived(spans: list[TracedSpan]) -> None:
    for found in records_of(spans):
        assert found.to_json()


def span(number: int, parent: int | None, kind: str = "CHAIN", **attributes: Any) -> TracedSpan:
    return TracedSpan(
        trace_id="0" * 31 + "1",
        span_id=f"{number:016x}",
        parent_id=None if parent is None else f"{parent:016x}",
        name="step",
        start_ns=number,
        end_ns=number + 1,
        attributes={"openinference.span.kind": kind, **attributes},
    )


def test_a_span_that_cannot_be_read_costs_itself_and_a_line_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    broken, answering = span(1, None), span(2, None, **{"output.value": "Ada."})
    assert len(records_of([replace(broken, attributes=None), replace(answering, scope="langchain")])) == 1
    assert caplog.messages == ["a span of a trace could not be read (TypeError)"]
