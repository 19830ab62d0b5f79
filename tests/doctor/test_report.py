import io
import json

from rich.console import Console

from ragspan.doctor import Finding, as_json, shown, verdict


def printed(renderable, width=80):
    console = Console(file=io.StringIO(), width=width)
    console.print(renderable)
    return console.file.getvalue()


def a_finding(**changes):
    return Finding(**({"check": "judge", "state": "ok", "found": "all is well"} | changes))


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
        "state": "ok",
        "found": "all is well",
        "advice": "mend it",
        "facts": {"seconds": 0.5},
    }
