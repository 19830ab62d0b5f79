"""Records are redacted before they go to a helper process; what is said of them there is redacted there, or not at all."""

from __future__ import annotations

import os
import string

import pytest

from ragspan.metrics import Faithfulness
from ragspan.telemetry import OTelEmitter
from ragspan.testing import FakeJudge

SECRET = "anna@example.org"


@pytest.fixture(autouse=True)
def environment(monkeypatch, otlp_listener):
    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", otlp_listener.url)


def exported(engine, record, listener, patience):
    engine.submit(record)
    assert engine.flush(patience)
    [answer] = [span for span in listener.spans if span.name == "invoke_workflow answer"]
    return answer.attributes


@pytest.mark.parametrize(
    ("redact", "explanation"),
    [(lambda text: text.replace(SECRET, "[E-Mail]"), None), (string.capwords, "1 Of 1 Claims Unsupported")],
    ids=["one that does not pickle", "one that does"],
)
def test_what_a_helper_exports_is_redacted(fakes, make_engine, otlp_listener, redact, explanation):
    metric = Faithfulness(judge=FakeJudge(supported=[False]))
    emitter = OTelEmitter(capture_content=True, explanations=True)
    engine = make_engine(metric, emitters=[emitter], export="helper", redact=redact)

    attributes = exported(engine, fakes.a_record(question=f"who is {SECRET}"), otlp_listener, fakes.PATIENCE)

    assert attributes["input.value"] == redact(f"who is {SECRET}")
    assert attributes["ragspan.score.faithfulness"] == 0.0
    assert (explanation or "") in attributes.get("ragspan.explanation.faithfulness", "")
    assert ("ragspan.explanation.faithfulness" in attributes) is (explanation is not None)
    assert engine.stats().dropped == {}


def test_what_cannot_be_redacted_goes_to_no_helper(fakes, make_engine, otlp_listener):
    engine = make_engine(
        fakes.ConstantMetric(),
        emitters=[OTelEmitter(capture_content=True)],
        export="helper",
        redact=lambda _: None,
    )
    engine.submit(fakes.a_record(question=SECRET))

    assert engine.flush(fakes.PATIENCE)
    assert engine.stats().dropped == {"redaction_failed": 1}
    assert otlp_listener.spans == []
