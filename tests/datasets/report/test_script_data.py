from __future__ import annotations

import base64
import hashlib
import json

import pytest

from ragspan.datasets.report.script_data import content_policy, script_json

HOSTILE = ["</script><script>alert(1)</script>", "<!--<script>", "a & b", "\u2028\u2029", "\ud800", '"quotes"', "\x00"]


@pytest.mark.parametrize("text", HOSTILE)
def test_data_cannot_end_its_element_and_come_back_as_they_were(text):
    written = script_json({text: [text]})

    assert not set(written) & set("<>&\u2028\u2029")
    assert written.isascii()
    assert json.loads(written) == {text: [text]}


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_json_does_not_know_is_an_error(value):
    with pytest.raises(ValueError, match="JSON"):
        script_json([value])


def test_the_policy_forbids_everything_but_the_scripts_that_it_is_made_for():
    digest = base64.b64encode(hashlib.sha256(b"go()").digest()).decode()

    rules = dict(rule.split(" ", 1) for rule in content_policy(["go()"]).split("; "))

    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == f"'sha256-{digest}'"
    assert "connect-src" not in rules  # so it is what default-src says
    assert rules["form-action"] == rules["base-uri"] == "'none'"
