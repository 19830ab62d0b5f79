"""What the tests share: the real tools, a browser, and applications that send their answers there.

Servers are started once for all tests, and a second pair for the tests in which they fail. Their logs, and what the
browser saw, stay in `artefacts/`.
"""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from backends.mlflow import MLflow
from backends.phoenix import Phoenix
from backends.server import ARTEFACTS
from screen import Screen, open_browser


def pytest_addoption(parser):
    parser.addoption("--pictures", type=Path, help="also put the documentation's pictures into this folder")


def pytest_configure(config):
    shutil.rmtree(ARTEFACTS, ignore_errors=True)
    ARTEFACTS.mkdir()
    signal.signal(signal.SIGTERM, lambda *_: pytest.exit("asked to end", returncode=143))  # and stop the servers


@pytest.fixture(scope="session", autouse=True)
def nothing_from_outside():
    """No variable of this shell tells ragspan, the exporters or the frameworks what to do, and no proxy is asked."""
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith(("RAGSPAN_", "OTEL_", "PHOENIX_", "MLFLOW_")):
                patch.delenv(name)
        patch.delenv("TIKTOKEN_CACHE_DIR", raising=False)
        patch.delenv("NLTK_DATA", raising=False)
        patch.setenv("NO_PROXY", "*")
        yield


@pytest.fixture(scope="session")
def _servers(tmp_path_factory, nothing_from_outside):
    """Both at once: each takes its time to come up, most of it waiting."""
    folder = tmp_path_factory.mktemp("servers")
    phoenix = Phoenix(folder / "phoenix", log=ARTEFACTS / "phoenix.log")
    mlflow = MLflow(folder / "mlflow", log=ARTEFACTS / "mlflow.log")
    try:
        phoenix.launch()
        mlflow.launch()
        yield phoenix, mlflow
    finally:
        phoenix.stop()
        mlflow.stop()


@pytest.fixture(scope="session")
def phoenix(_servers):
    _servers[0].wait_until_ready()
    return _servers[0]


@pytest.fixture(scope="session")
def mlflow(_servers):
    _servers[1].wait_until_ready()
    return _servers[1]


@pytest.fixture(scope="module")
def browser(nothing_from_outside):
    with sync_playwright() as playwright:
        browser = open_browser(playwright)
        yield browser
        browser.close()


@pytest.fixture
def screen(browser, request):
    """A page of a browser; if the test fails, a picture of it stays behind."""
    seen = Screen(browser, artefacts=ARTEFACTS, pictures=request.config.getoption("--pictures"))
    failed_before = request.session.testsfailed
    yield seen
    if request.session.testsfailed > failed_before:
        seen.keep(f"failed-{request.node.originalname}")
    outside = seen.requests_to_elsewhere()
    seen.close()
    assert outside == []
