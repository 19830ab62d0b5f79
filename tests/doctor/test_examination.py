import threading

import pytest

from ragspan.doctor import CHECKS, Finding, exit_code
from ragspan.doctor.examination import within


def test_the_checks_are_made_in_order(examined):
    checks = list(dict.fromkeys(finding.check for finding in examined()))

    assert checks == [check for check in CHECKS if check not in {"sink", "helper"}]


def test_no_secret_leaves(examined, otlp_listener):
    otlp_listener.answers(401, b"t0ps3cret is no key of ours", Content_Type="text/plain")
    findings = examined(OTEL_EXPORTER_OTLP_ENDPOINT=otlp_listener.url, OTEL_EXPORTER_OTLP_HEADERS="x-key=t0ps3cret")

    assert "[secret] is no key of ours" in repr(findings)
    assert "t0ps3cret" not in repr(findings)


def test_a_check_that_hangs_is_left_behind():
    released = threading.Event()

    [found] = within(0.05, "judge", lambda: released.wait(60) and [])

    released.set()
    assert found.is_hanging
    assert found.found == "the check did not end within 0.05 s"


def test_a_check_that_raises_is_a_finding():
    def raising():
        raise SystemExit("oh")

    [found] = within(30.0, "judge", raising)

    assert (found.state, found.found) == ("failed", "the check itself failed: SystemExit: oh")


@pytest.mark.parametrize(
    ("states", "misuse", "code"),
    [
        ([], False, 0),
        (["ok", "warning", "skipped"], False, 0),
        (["ok", "failed"], False, 1),
        (["failed", "failed"], True, 2),
        (["warning"], True, 0),
    ],
)
def test_the_exit_code_is_that_of_the_worst_failure(states, misuse, code):
    findings = [Finding(check="judge", state=state, found="", is_misuse=misuse) for state in states]

    assert exit_code(findings) == code
