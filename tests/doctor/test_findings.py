import pytest

from ragspan.doctor import Finding, exit_code


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
