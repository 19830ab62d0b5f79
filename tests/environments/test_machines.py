"""Machines that give a program less than it is used to, and stop it in other ways."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="uses what Linux has")]

GROUNDED = pytest.approx(1.0, abs=0.1)
RUN = "import os, sys; {before}; os.execv(sys.executable, [sys.executable, 'program.py'])"


@pytest.fixture
def unshare():
    """Begins a command with namespaces of its own, as containers have."""
    if (
        os.geteuid()
        or not shutil.which("unshare")
        or subprocess.run(["unshare", "--mount", "true"], check=False).returncode
    ):
        if os.environ.get("CI") == "true":
            pytest.fail("no namespaces can be made")
        pytest.skip("only root can make namespaces")
    return lambda *arguments: ("-c", f"import os; os.execvp('unshare', ['unshare', *{arguments!r}])")


def children_of(pid):
    children = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            _, _, rest = status.read_text().rpartition(")")
        except OSError:
            continue  # it has ended
        if int(rest.split()[1]) == pid:
            children.append(int(status.parent.name))
    return children


def state_of(pid):
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_where_nothing_can_be_written_and_nobody_has_a_home(start, scores, unshare):
    program = start(
        """
        import tempfile
        try:
            tempfile.gettempdir()
        except OSError:
            print("no place for files")
        answer("answer")
        print(engine.flush(60))
        """,
        *unshare(
            *("--mount", "sh", "-c"),
            f"mount -o remount,bind,ro / && exec env -u HOME TMPDIR=/not/there {sys.executable} program.py",
        ),
        JUDGE="overlap",
    )

    assert program.wait() == 0
    assert program.output == ["no place for files", "True"]
    assert scores() == {"answer": GROUNDED}


def test_a_daemon_whose_descriptors_are_closed(start, scores, tmp_path):
    program = start(
        """
        import logging
        logging.basicConfig(filename="log")
        answer("answer")
        """,
        *("-c", RUN.format(before="os.closerange(0, 3)")),
        JUDGE="overlap",
    )

    assert program.wait() == 0
    assert (tmp_path / "log").read_text() == ""
    assert scores() == {"answer": GROUNDED}


def test_a_log_on_a_disk_that_is_full(start, scores):
    """There is something to log: a frozen application has no helper."""
    program = start(
        """
        sys.frozen = True
        answer("answer")
        """,
        *("-c", RUN.format(before="os.dup2(os.open('/dev/full', os.O_WRONLY), 2)")),
        JUDGE="overlap",
    )

    assert program.wait() == 0
    assert scores() == {"answer": GROUNDED}


def test_a_function_that_is_frozen_between_its_requests(start, scores):
    program = start(
        """
        for number in range(3):
            answer(f"answer {number}")
            print("flushed", engine.flush(60))
            wait_for_test()
        """,
        JUDGE="overlap",
    )
    for _ in range(3):
        program.line_with("flushed True")
        both = [program.pid, *children_of(program.pid)]
        assert len(both) == 2
        for pid in both:
            os.kill(pid, signal.SIGSTOP)
        while not all(state_of(pid) == "T" for pid in both):
            time.sleep(0.01)
        for pid in both:
            os.kill(pid, signal.SIGCONT)
        program.let_go_on()

    assert program.wait() == 0
    assert scores() == {f"answer {number}": GROUNDED for number in range(3)}


def test_the_first_process_of_a_container_that_is_told_to_end(start, judge, scores, unshare):
    """The kernel ignores a signal that the first process has no handler for."""
    program = start(
        """
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        answer("answer")
        print("process", os.getpid())
        signal.pause()
        """,
        *unshare("--pid", "--fork", "--mount-proc", "--kill-child", sys.executable, "program.py"),
    )
    program.line_with("process 1$")
    judge.wait_until_asked(1)
    [first] = children_of(program.pid)
    os.kill(first, signal.SIGTERM)
    judge.release()

    assert program.wait() == 0
    assert scores() == {"answer": 1.0}
