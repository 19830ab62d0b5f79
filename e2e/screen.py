"""A headless browser, and one page in it as a person would look at it."""

from __future__ import annotations

import shutil
from pathlib import Path
from urllib.parse import urlsplit

PATIENCE_MILLIS = 60_000
_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
_NAMES = ("chromium", "chromium-browser", "google-chrome")


def open_browser(playwright):
    """The system's Chromium, with nothing in it that calls home."""
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    assert found is not None, "no Chromium: `make e2e` installs it, or says how to"
    return playwright.chromium.launch(executable_path=found, args=list(_FLAGS))


class Screen:
    """A page.

    Args:
        browser: whose page it is.
        artefacts: where all pictures go.
        pictures: where those for the documentation go as well; None keeps them among the artefacts.
    """

    def __init__(self, browser, *, artefacts: Path, pictures: Path | None) -> None:
        self._artefacts = artefacts
        self._pictures = pictures
        self._context = browser.new_context(viewport={"width": 2800, "height": 1000})
        self._hosts: set[str] = set()
        self.page = self._context.new_page()
        self.page.set_default_timeout(PATIENCE_MILLIS)
        self.page.on("request", lambda request: self._hosts.add(urlsplit(request.url).hostname or ""))

    def resize(self, *, width: int, height: int) -> None:
        self.page.set_viewport_size({"width": width, "height": height})

    def keep(self, name: str) -> None:
        """Keep a picture of the whole page."""
        self.page.screenshot(path=self._artefacts / f"{name}.png")

    def picture(self, name: str, **where) -> None:
        """Keep a picture that the documentation shows; `where` is what Playwright's `screenshot` takes, such as `clip`."""
        file = self._artefacts / f"{name}.png"
        self.page.screenshot(path=file, animations="disabled", caret="hide", **where)
        if self._pictures is not None:
            self._pictures.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, self._pictures / file.name)

    def requests_to_elsewhere(self) -> list[str]:
        """Hosts other than this machine that the page asked for something."""
        return sorted(self._hosts - {"", "127.0.0.1"})

    def close(self) -> None:
        self._context.close()
