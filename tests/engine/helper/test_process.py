"""What a helper process shares with the application that started it, and when it ends."""

from __future__ import annotations

import os
import pickle
import select
import signal
import struct
import sys
from pathlib import Path

import pytest

from ragspan.engine.helper.helper_process import HelperProcess

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


def open_descriptors():
    return [number for number in range(1000) if is_open(number)]


def is_open(number):
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def greet(process):
    """Wait until a helper process answers."""
    data = pickle.dumps([("serve", 1, "MetricService", pickle.dumps([]))])
    process.socket.sendall(struct.pack(">Q", len(data)) + data)
    assert select.select([process.socket], [], [], 20)[0]
    assert b"answer" in process.socket.recv(100_000)


@pytest.fixture
def start():
    """Starts helper processes."""
    started = []

    def start_process():
        started.append(HelperProcess())
        return started[-1]

    yield start_process
    for process in started:
        process.socket.close()
        process.kill()
        process.end(20)


def test_it_is_killed_when_it_does_not_end_in_time(start, stopped):
    process = start()
    stopped(process.pid)
    process.socket.close()

    assert process.end(0.01) == -signal.SIGKILL


def test_no_descriptor_is_left_behind(start, monkeypatch):
    before = open_descriptors()
    process = start()
    process.socket.close()
    process.end(20)
    monkeypatch.setattr(sys, "executable", "/not/there/python")
    with pytest.raises(FileNotFoundError):
        HelperProcess()

    assert open_descriptors() == before


def test_a_frozen_application_is_not_started_as_its_own_helper(monkeypatch):
    """Its file may be called anything: `python-service`, say."""
    monkeypatch.setattr(sys, "frozen", True, raising=False)

    with pytest.raises(RuntimeError, match="this application is frozen"):
        HelperProcess()


def test_modules_that_lie_about_are_not_run(start, monkeypatch, tmp_path):
    """The search path is the application's, and the folder that it happens to be in is not on it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    for name in ("json", "socket", "asyncio", "sitecustomize", "ragspan"):
        Path(f"{name}.py").write_text("raise SystemExit(9)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("PYTHONWARNINGS", "error")

    greet(start())
