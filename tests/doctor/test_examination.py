import io
import json
import threading

from rich.console import Console

from ragspan.doctor import TITLES, Finding, as_json, shown, verdict
from ragspan.doctor.examination import within


def test_the_checks_are_made_in_order(examined):
    checks = list(dict.fromkeys(finding.check for finding in examined()))

    assert checks == [check for check in TITLES if check not in {"sink", "helper", "receiver"}]


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
    assert (found.code, found.found) == ("did_not_end", "the check did not end within 0.05 s")


def test_a_check_that_raises_is_a_finding():
    def raising():
        raise SystemExit("oh")

    [found] = within(30.0, "judge", raising)

    assert (found.code, found.found) == ("check_failed", "the check itself failed: SystemExit: oh")


def printed(renderable, width=80):
    console = Console(file=io.StringIO(), width=width)
    console.print(renderable)
    return console.file.getvalue()


def a_finding(**changes):
    return Finding(**({"check": "judge", "code": "judge_answered", "state": "ok", "found": "all is well"} | changes))


def test_a_line_has_the_state_what_was_found_and_what_to_do():
    lines = printed(shown(a_finding(state="failed", found="[bold]hi[/bold] [key]", advice="mend it")))

    assert "failed   [bold]hi[/bold] [key]" in lines  # what a server says is never taken for markup
    assert "→ mend it" in lines


def test_the_verdict_names_the_outcome_and_counts_the_warnings():
    assert "All is well" in printed(verdict([a_finding()]))
    assert "1 warning." in printed(verdict([a_finding(state="warning")]))
    assert "Something is in the way" in printed(verdict([a_finding(state="failed")]))
    assert "A setting cannot be used" in printed(verdict([a_finding(state="failed", is_misuse=True)]))


def test_the_json_holds_everything():
    finding = a_finding(advice="mend it", facts={"seconds": 0.5})

    document = json.loads(as_json([finding, a_finding(state="failed")]))

    assert document["exit_code"] == 1
    assert document["ragspan"]
    assert document["findings"][0] == {
        "check": "judge",
        "code": "judge_answered",
        "state": "ok",
        "found": "all is well",
        "advice": "mend it",
        "facts": {"seconds": 0.5},
    }
