import threading

from ragspan.doctor import CHECKS, Diagnosis, examine
from ragspan.doctor.examination import within


def test_the_checks_are_made_in_order():
    made = tuple(diagnosis.check for diagnosis in examine(timeout=30.0))

    assert made == tuple(check for check in CHECKS if check not in {"sink", "helper"})


def test_settings_that_cannot_be_used_do_not_keep_the_rest_from_being_looked_at(set_variables, otlp_listener):
    set_variables(RAGSPAN_SAMPLE_RATE="2", OTEL_EXPORTER_OTLP_ENDPOINT=otlp_listener.url)

    diagnoses = {diagnosis.check: diagnosis for diagnosis in examine(timeout=30.0)}

    assert diagnoses["settings"].failed
    assert not diagnoses["telemetry"].failed
    assert {diagnoses[check].findings[0].state for check in ("judge", "endpoint", "record")} == {"skipped"}


def test_ragspan_switched_off_is_what_failed_and_nothing_is_asked(set_variables, otlp_listener):
    set_variables(RAGSPAN_ENABLED="false", OTEL_EXPORTER_OTLP_ENDPOINT=otlp_listener.url)

    diagnoses = {diagnosis.check: diagnosis for diagnosis in examine(timeout=30.0)}

    assert [check for check, diagnosis in diagnoses.items() if diagnosis.failed] == ["settings"]
    assert diagnoses["judge"].findings[0].state == "skipped"


def test_no_secret_leaves(set_variables, otlp_listener):
    set_variables(OTEL_EXPORTER_OTLP_ENDPOINT=otlp_listener.url, OTEL_EXPORTER_OTLP_HEADERS="x-key=t0ps3cret")
    otlp_listener.answers(401, b"t0ps3cret is no key of ours", Content_Type="text/plain")

    findings = [finding for diagnosis in examine(timeout=30.0) for finding in diagnosis.findings]

    assert "[secret] is no key of ours" in repr(findings)
    assert "t0ps3cret" not in repr(findings)


def test_a_check_that_hangs_is_left_behind():
    released = threading.Event()

    [diagnosis] = within(0.05, "judge", lambda: released.wait(60) and None)

    released.set()
    assert diagnosis.is_hanging
    assert diagnosis.findings[0].found == "the check did not end within 0.05 s"


def test_a_check_that_raises_is_a_finding():
    def raising():
        raise SystemExit("oh")

    [diagnosis] = within(30.0, "judge", raising)

    [finding] = diagnosis.findings
    assert (finding.state, finding.found) == ("failed", "the check itself failed: SystemExit: oh")


def test_a_check_that_ends_in_time_is_what_it_came_to():
    expected = [Diagnosis(check="judge", findings=[])]

    assert within(30.0, "judge", lambda: expected) is expected
