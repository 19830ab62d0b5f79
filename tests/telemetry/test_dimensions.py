"""Metadata by which scores are told apart."""

from __future__ import annotations

import pytest

from ragspan.outcomes import Score
from ragspan.telemetry.content import MAX_DIMENSION_VALUES

NAMES = ("release", "tenant")
METADATA = {"release": "2.1", "tenant": 7, "secret": "not named", "nested": {}}
TOLD = {"ragspan.dimension.release": "2.1", "ragspan.dimension.tenant": "7"}


def told(attributes):
    return {name: value for name, value in attributes.items() if name.startswith("ragspan.dimension.")}


@pytest.mark.parametrize(
    ("names", "metadata", "expected"),
    [(NAMES, METADATA, TOLD), ((), METADATA, {}), (NAMES, {"release": None}, {})],
    ids=["named", "no names", "no entry"],
)
def test_nothing_else_of_the_metadata_leaves_the_process_with_late_scores_either(
    telemetry, make_record, answer, names, metadata, expected
):
    emitter = telemetry.emitter(dimensions=names)
    answer(emitter, make_record(metadata=metadata), {"faithfulness": Score(value=1)}, late=True)

    assert told(telemetry.span("evaluation faithfulness").attributes) == expected
    assert told(telemetry.span("invoke_workflow rivers").attributes) == expected
    assert [told(point.attributes) for point in telemetry.points("ragspan.score")] == [expected]


def test_metrics_tell_a_bounded_number_of_values_apart_and_spans_all(telemetry, make_record, answer):
    emitter = telemetry.emitter(dimensions=("tenant",))
    for number in range(MAX_DIMENSION_VALUES + 5):
        answer(emitter, make_record(metadata={"tenant": f"t{number}"}), {"faithfulness": Score(value=1)})

    counts = {point.attributes["ragspan.dimension.tenant"]: point.count for point in telemetry.points("ragspan.score")}
    assert len(counts) == MAX_DIMENSION_VALUES + 1
    assert counts["_OTHER"] == 5
    assert {span.attributes.get("ragspan.dimension.tenant") for span in telemetry.spans} >= {
        "t0",
        f"t{MAX_DIMENSION_VALUES + 4}",
    }
