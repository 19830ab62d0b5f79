import io
import json

from rich.console import Console

from ragspan.doctor import CHECKS, Diagnosis, Finding
from ragspan.doctor.report import as_json, shown, verdict


def printed(renderable, width=80):
    console = Console(file=io.StringIO(), width=width)
    console.print(renderable)
    return console.file.getvalue()


def a_finding(**changes):
    return Finding(**({"check": "judge", "state": "ok", "found": "all is well"} | changes))


def test_a_line_has_the_state_what_was_found_and_what_to_do():
    lines = printed(shown(Diagnosis(check="judge", findings=[a_finding(state="failed", advice="mend it")])))

    assert "failed   all is well" in lines
    assert "→ mend it" in lines


def test_every_check_has_a_title():
    titles = [printed(shown(Diagnosis(check=check, findings=[]))).strip() for check in CHECKS]

    assert all(titles)
    assert len(set(titles)) == len(CHECKS)


def test_what_a_server_says_is_never_taken_for_markup():
    assert "[bold]hi[/bold] [key]" in printed(
        shown(Diagnosis(check="judge", findings=[a_finding(found="[bold]hi[/bold] [key]")]))
    )


def test_long_findings_stay_within_80_columns():
    lines = printed(shown(Diagnosis(check="judge", findings=[a_finding(found="word " * 50, advice="x" * 200)])))

    assert max(map(len, lines.splitlines())) <= 80


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
        "state": "ok",
        "found": "all is well",
        "advice": "mend it",
        "facts": {"seconds": 0.5},
    }
