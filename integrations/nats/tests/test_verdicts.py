"""How the delivery of a scored record ends."""

from __future__ import annotations

import pytest
from worker_parts import OUTAGE, a_record, scored

from ragspan.outcomes import MetricFailure, NotApplicable, Score
from ragspan_nats.scoring import disposition_of

SCORE = Score(value=0.5)
SILENT = NotApplicable(reason="no_contexts")
INVALID = MetricFailure(error_type="InvalidVerdict", message="no JSON")
TIMEOUT = MetricFailure(error_type="timeout", message="no outcome within 60 s")


def verdict(*outcomes, number=1, max_deliveries=3):
    named = {f"metric-{place}": outcome for place, outcome in enumerate(outcomes)}
    return disposition_of(scored(a_record(), named), number, max_deliveries)


@pytest.mark.parametrize(
    ("what", "outcomes", "first", "last"),
    [
        ("scores", (SCORE,), "acknowledged", "acknowledged"),
        ("a failure among scores", (SCORE, INVALID), "acknowledged", "acknowledged"),
        ("nothing but a failure", (INVALID,), "acknowledged", "acknowledged"),
        ("nothing applies", (SILENT, SILENT), "acknowledged", "acknowledged"),
        ("one metric too slow", (SCORE, TIMEOUT), "acknowledged", "acknowledged"),
        ("no metrics", (), "acknowledged", "acknowledged"),
        ("an outage", (OUTAGE,), "nacked", "nacked"),
        ("an outage of some", (SCORE, OUTAGE), "nacked", "acknowledged"),
        ("an outage beside a failure", (INVALID, OUTAGE), "nacked", "nacked"),
        ("an outage beside silence", (SILENT, OUTAGE), "nacked", "nacked"),
        ("all too slow", (TIMEOUT, TIMEOUT), "nacked", "nacked"),
        ("all that apply too slow", (SILENT, TIMEOUT), "nacked", "nacked"),
    ],
)
def test_only_a_failing_service_brings_a_record_again_until_its_last_delivery(what, outcomes, first, last):
    for number, ending in ((1, first), (2, first), (3, last), (9, last)):
        found = verdict(*outcomes, number=number)
        assert (found.ending, found.reason) == (ending, None if ending == "acknowledged" else "judge_outage")
