"""`ragspan worker` in the test's own process, which has to itself what is otherwise one for a whole process."""

from __future__ import annotations

import logging
import os
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest
from opentelemetry.metrics import _internal as global_metrics
from opentelemetry.util._once import Once

from ragspan.cli import app


@pytest.fixture
def run_worker(capsys, monkeypatch):
    """Runs the command until `use(log)`, in a thread, has returned and the signal has come; its exit code and all that it said.

    `log()` returns what it has said so far.
    """
    monkeypatch.setattr(global_metrics, "_METER_PROVIDER", None)
    monkeypatch.setattr(global_metrics, "_METER_PROVIDER_SET_ONCE", Once())
    monkeypatch.setattr(global_metrics, "_PROXY_METER_PROVIDER", global_metrics._ProxyMeterProvider())
    monkeypatch.setattr(logging.getLogger("ragspan"), "level", logging.INFO)
    monkeypatch.setenv("NO_PROXY", "*")
    handler = signal.signal(signal.SIGTERM, lambda *_: None)  # where it does not start, it is the tests' own
    said = []

    def log():
        said.append(capsys.readouterr().err)
        return "".join(said)

    def run(*arguments, use, number=signal.SIGTERM):
        def use_it():
            try:
                use(log)
            finally:
                os.kill(os.getpid(), number)

        with ThreadPoolExecutor(1) as pool:
            used = pool.submit(use_it)
            with pytest.raises(SystemExit) as ended:
                app(["worker", *arguments])
            used.result()
        return ended.value.code, log()

    yield run
    signal.signal(signal.SIGTERM, handler)
