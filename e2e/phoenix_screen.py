"""What a person does in Phoenix's web page."""

from __future__ import annotations

from backends.server import eventually

_SECONDS = 60.0
_CELLS = "rows => rows.map(row => [...row.querySelectorAll('th, td')].map(cell => cell.innerText))"


class PhoenixScreen:
    """The spans of a project, and one trace of them."""

    def __init__(self, screen, phoenix) -> None:
        self._screen = screen
        self._page = screen.page
        self._phoenix = phoenix

    def open_spans(self, project: str) -> None:
        """Open the table; Phoenix itself puts the filter `parent_id is None` there, which hides spans below others."""
        self._page.goto(f"{self._phoenix.url}/projects/{self._phoenix.project_id(project)}/spans")
        self._page.locator("table tbody tr").first.wait_for()

    def filter(self, condition: str) -> None:
        """Type a filter in place of the one that is there."""
        box = self._page.get_by_role("textbox", name="Filter spans")
        box.click()
        self._page.keyboard.press("ControlOrMeta+A")
        self._page.keyboard.type(condition)
        eventually(box.inner_text, until=condition.__eq__, seconds=_SECONDS, what="the condition in the box")
        self._page.keyboard.press("Escape")  # the suggestions, which lie above the rows
        self._page.wait_for_function("() => location.search.includes('spanFilterCondition=')")

    def add_column(self, annotation: str) -> None:
        """Tick an annotation in the menu of columns."""
        self._page.get_by_role("button", name="Columns").click()
        self._page.get_by_role("dialog").locator("label").filter(has_text=annotation).click()
        self._page.keyboard.press("Escape")
        self._page.locator("table thead th").filter(has_text=annotation).wait_for()

    def widen(self, column: str, *, by: int) -> None:
        """Drag the edge of a column to the right, by so many pixels."""
        edge = self._page.locator("table thead th").filter(has_text=column).locator(".resizer").bounding_box()
        x, y = edge["x"] + edge["width"] / 2, edge["y"] + edge["height"] / 2
        self._page.mouse.move(x, y)
        self._page.mouse.down()
        self._page.mouse.move(x + by, y, steps=5)
        self._page.mouse.up()

    def column(self, name: str) -> list[str]:
        """What stands in a column, row by row: read at one moment, since a filter takes rows away while one looks."""
        heads, *rows = self._page.locator("table tr").evaluate_all(_CELLS) or [[]]
        names = [head.strip().split("\n")[0] for head in heads]
        cells = [row[names.index(name)] for row in rows if name in names and len(row) == len(heads)]
        return [cell.replace("\N{NO-BREAK SPACE}", " ").replace("\nView annotation details", "") for cell in cells]

    def wait_for_column(self, name: str, expected) -> None:
        """Wait until the column holds these texts, in any order."""
        eventually(
            lambda: sorted(self.column(name)),
            until=sorted(expected).__eq__,
            seconds=_SECONDS,
            what=f"{sorted(expected)} in the column {name}",
        )

    def open_trace(self, span_id: str) -> None:
        """Follow Phoenix's link to a span."""
        self._page.goto(f"{self._phoenix.url}/redirects/spans/{span_id}")
        self._page.get_by_placeholder("Search trace").wait_for()

    def tree(self) -> str:
        """The text of the trace's tree."""
        return self._page.locator("ul[data-testid=trace-tree]").inner_text()

    def details(self) -> str:
        """The text beside the tree, about the span that was opened."""
        return self._page.get_by_test_id("span-details").first.inner_text()

    def picture_of_table(self, name: str, *, until_column: str) -> None:
        """From the filter to the right edge of a column."""
        self._page.evaluate("() => document.activeElement.blur()")
        self._page.evaluate(
            "() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 500)))"
        )  # it paints late
        table = self._page.get_by_test_id("table-content").bounding_box()
        last = self._page.locator("table thead th").filter(has_text=until_column).bounding_box()
        width = last["x"] + last["width"] - table["x"]
        self._screen.picture(name, clip=_upper_part(table, height=280) | {"width": width})


def _upper_part(box: dict[str, float], *, height: float) -> dict[str, float]:
    return box | {"height": min(height, box["height"])}
