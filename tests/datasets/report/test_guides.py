"""The report's words are those of the documentation."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ragspan.config import METRIC_NAMES
from ragspan.datasets.report.guides import GUIDES, REASONS

DOCS = Path(__file__).parents[3] / "docs" / "metrics.md"
TEXT = DOCS.read_text(encoding="utf-8")


def plain(text):
    return " ".join(text.replace("`", "").split())


def section(metric):
    """The part of the documentation that begins by naming the metric."""
    return next(part for part in TEXT.split("\n## ") if part.partition("\n\n")[2].startswith(f"`{metric}`"))


@pytest.mark.parametrize("metric", GUIDES)
def test_what_to_look_at_is_what_the_documentation_says(metric):
    (advice,) = re.findall(r"- When it is low: (.*?)(?=\n- |\n\n|\Z)", section(metric), re.DOTALL)

    assert GUIDES[metric].when_low == plain(advice)


@pytest.mark.parametrize("metric", GUIDES)
def test_what_a_metric_asks_is_what_the_documentation_says(metric):
    (question,) = re.findall(rf"^\| `{metric}` \| (.*?) \|", TEXT, re.MULTILINE)

    assert GUIDES[metric].question == plain(question)


def test_every_metric_has_a_guide():
    assert set(METRIC_NAMES) == set(GUIDES)


def test_every_reason_means_what_the_documentation_says():
    table = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|$", TEXT.partition("## When there is no score")[2], re.MULTILINE))

    assert {reason: plain(meaning) for reason, meaning in table.items()} == REASONS
