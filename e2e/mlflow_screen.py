"""What a person does in MLflow's web page."""

from __future__ import annotations

from playwright.sync_api import TimeoutError as LocatorTimeoutError

from backends.server import eventually

_SECONDS = 60.0
_LIST_MILLIS = 5_000
_SEEN_BEFORE = """
    localStorage.setItem('mlflow.detectIssues.guidanceShown_v1', 'true');
    localStorage.setItem('mlflow.assistant.fab.autoOpenedOnFirstLoad_v1', 'true');
    localStorage.setItem('mlflow.assistant.panelOpen_v1', 'false');
"""
"""What the page notes of somebody who has closed its introductions."""
_CELLS = """
    rows => rows.map(row => [...row.querySelectorAll('[role=columnheader], [role=cell]')].map(cell => cell.innerText.trim()))
"""


class MLflowScreen:
    """The traces of an experiment, and one of them."""

    def __init__(self, screen, mlflow) -> None:
        self._screen = screen
        self._page = screen.page
        self._page.add_init_script(_SEEN_BEFORE)
        self._mlflow = mlflow

    def open_traces(self, experiment: str) -> None:
        self._page.goto(f"{self._mlflow.url}/#/experiments/{self._mlflow.experiment_id(experiment)}/traces")
        self._page.get_by_role("row").nth(1).wait_for()

    def filter_feedback(self, name: str, operator: str, value: str) -> None:
        """Fill the filter in: there is no box for a whole condition."""
        self._page.get_by_role("button", name="Filters").click()
        self._choose("Filter field", "Feedback")
        self._choose("Filter key", name)
        if operator != "=":
            self._choose("Filter operator", operator)
        self._page.get_by_role("textbox", name="Filter value").fill(value)
        self._page.get_by_role("button", name="Apply filters").click()

    def operators_for_feedback(self) -> list[str]:
        """What the page lets people compare feedback with."""
        self._page.get_by_role("button", name="Filters").click()
        self._choose("Filter field", "Feedback")
        self._page.get_by_role("combobox", name="Filter operator").click()
        return self._page.get_by_role("option").all_inner_texts()

    def column(self, name: str) -> list[str]:
        """What stands in a column, row by row: read at one moment, since a filter takes rows away while one looks."""
        heads, *rows = self._page.get_by_role("row").evaluate_all(_CELLS) or [[]]
        return [row[heads.index(name)] for row in rows if name in heads and len(row) == len(heads)]

    def wait_for_column(self, name: str, expected) -> None:
        """Wait until the column holds these texts, in any order."""
        eventually(
            lambda: sorted(self.column(name)),
            until=sorted(expected).__eq__,
            seconds=_SECONDS,
            what=f"{sorted(expected)} in the column {name}",
        )

    def open_trace(self, experiment: str, trace_id: str) -> None:
        """Open a trace with its assessments beside it."""
        number = self._mlflow.experiment_id(experiment)
        self._page.goto(f"{self._mlflow.url}/#/experiments/{number}/traces?traceId={trace_id}")
        self._page.get_by_role("button", name="Assess trace").click()
        self._page.get_by_text("Feedback (").wait_for()

    def trace(self) -> str:
        """The text of the opened trace."""
        return self._page.get_by_role("dialog").inner_text()

    def picture(self, name: str, *, height: int) -> None:
        """The page without its navigation, down to this height."""
        size = self._page.viewport_size
        self._screen.picture(name, clip={"x": 200, "y": 0, "width": size["width"] - 200, "height": height})

    def _choose(self, box: str, option: str) -> None:
        """Choose, and see to it that the page took notice: while it loads it forgets what was chosen."""
        chooser = self._page.get_by_role("combobox", name=box)

        def choose() -> str:
            chooser.click()
            try:
                self._page.get_by_role("option", name=option, exact=True).click(timeout=_LIST_MILLIS)
            except LocatorTimeoutError:  # the page was drawn anew, and the open list went with it
                return ""
            return chooser.inner_text().strip()

        eventually(choose, until=option.__eq__, seconds=_SECONDS, what=f"{option} in {box}")
