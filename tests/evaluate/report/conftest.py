"""Evaluations made from outcomes, and pages as a browser's parser reads them."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from html.parser import HTMLParser

import pytest

from ragspan import RagRecord, Score
from ragspan.evaluate.progress import RunProgress
from ragspan.evaluate.report import render
from ragspan.evaluate.rows import EvaluatedRow


def answered(
    row, outcomes, *, record_id=None, question="How tall is it?", contexts=("It is 300 m tall.",), response="300 m."
):
    """A row of a table with its outcomes; a number stands for a score with a threshold of one half."""
    whole = {
        metric: Score(value=outcome, threshold=0.5, judge="overlap") if isinstance(outcome, float) else outcome
        for metric, outcome in outcomes.items()
    }
    record = RagRecord(
        question=question, contexts=contexts, response=response, record_id=record_id or f"row-{row}", started_ns=1
    )
    return EvaluatedRow(row=row, record=record, outcomes=whole)


def evaluation_of(rows, **more):
    """What evaluating a table with these rows gives."""
    rows = list(rows)
    progress = RunProgress(tuple(dict.fromkeys(metric for row in rows for metric in row.outcomes)))
    for row in rows:
        progress.add(row)
    return replace(progress.evaluation(stream=lambda: iter(rows)), **more)


def scored(metric, values):
    """An evaluation of as many answers as there are values."""
    return evaluation_of(answered(row, {metric: value}) for row, value in enumerate(values, start=1))


class Page(HTMLParser):
    """A page taken apart as a browser does it."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.source = text
        self.elements = []
        self.scripts = []
        self.words = ""
        self._open = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self._open.append(tag)
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        if tag in ("dt", "dd", "td", "th"):
            self.words += " "
        while tag in self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data):
        if "script" in self._open:
            self.scripts[-1] += data
        elif "style" not in self._open:
            self.words += data

    @property
    def text(self):
        """What is to be read, without line breaks."""
        return " ".join(self.words.split())

    def attributes(self, name):
        return [attributes[name] for _, attributes in self.elements if name in attributes]

    def tags(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


WHEN = datetime(2026, 11, 20, 21, 42, tzinfo=timezone.utc)


@pytest.fixture
def page_of():
    """The page of an evaluation."""

    def make(evaluation, *, baseline=None, gates=(), title=None):
        return Page(render(evaluation, baseline=baseline, gates=gates, title=title, written_at=WHEN))

    return make


@pytest.fixture(name="answered")
def _answered():
    return answered


@pytest.fixture(name="evaluation_of")
def _evaluation_of():
    return evaluation_of


@pytest.fixture(name="scored")
def _scored():
    return scored
