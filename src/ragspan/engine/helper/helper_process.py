"""Starts the helper and ends it.

Guarantees:
- The application's main module is not run again, and nothing of the application's is imported: the helper is a new
  interpreter that gets its search path, and starts with `ragspan.engine.helper.serving`.
- It ends when the socket that they share is closed, or its parent is no longer the application: a killed application
  leaves no helper behind. Signals of the terminal and of process managers do not reach it, or are ignored.
- The child of a fork inherits the socket and nothing else: the helper stays the parent's.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
from pathlib import Path

from ragspan.config import process_environment

_START = (
    "import sys; _, _, descriptor, application, *sys.path[:] = sys.argv; "
    "from ragspan.engine.helper.serving import main; main(int(descriptor), int(application))"
)
"""Imports nothing before the search path is set: the working folder may have modules with names of the standard library."""
_NAME = "ragspan-helper"
_END_OF_A_KILLED = 1.0  # seconds
_LEFT_OUT = ("PYTHONPATH", "PYTHONSTARTUP", "PYTHONWARNINGS", "PYTHONINSPECT", "PYTHONPROFILEIMPORTTIME")
"""Variables for the start of the application's own interpreter; the helper gets the search path as it is."""


class HelperProcess:
    """A helper that has been started.

    Raises:
        OSError: the system gives no process, or no socket.
        RuntimeError: there is no interpreter to run, or this one is at its end.
    """

    def __init__(self) -> None:
        interpreter = _interpreter()
        self.socket, theirs = socket.socketpair()
        try:
            self.socket.settimeout(0)
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter
                [
                    *(interpreter, *_options(), "-c", _START, _NAME, str(theirs.fileno()), str(os.getpid())),
                    *map(str, sys.path),
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,  # what judges print goes nowhere
                pass_fds=[theirs.fileno()],
                start_new_session=True,
                env={name: value for name, value in process_environment().items() if name not in _LEFT_OUT},
            )
        except BaseException:
            self.socket.close()
            raise
        finally:
            theirs.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    def kill(self) -> None:
        self._process.kill()

    def end(self, timeout: float) -> int | None:
        """Close the socket, wait for the process to end, and kill it when the time is over.

        Returns:
            Its exit status, negative for a signal; None if it does not even end when it is killed: it waits for a disk.
        """
        with contextlib.suppress(OSError):  # it is closed already
            self.socket.shutdown(socket.SHUT_RDWR)  # the event loop that would close it may have stopped
        for wait in (timeout, _END_OF_A_KILLED):
            with contextlib.suppress(subprocess.TimeoutExpired):
                return self._process.wait(wait)
            self._process.kill()
        return None


def _interpreter() -> str:
    """The Python that runs this; programs that embed one, or are frozen with one, name themselves instead."""
    if getattr(sys, "frozen", False):  # whatever its name: it would start itself again
        raise RuntimeError("this application is frozen, and has no Python interpreter of its own to start")
    name = Path(sys.executable or "").name.lower()
    if "python" not in name and "pypy" not in name:
        raise RuntimeError(f"sys.executable is {sys.executable!r}, which does not look like a Python interpreter")
    return sys.executable


def _options() -> list[str]:
    """What keeps the user's own customisation out, if it was kept out of this interpreter."""
    return ["-I"] if sys.flags.isolated else ["-s"] if sys.flags.no_user_site else []
