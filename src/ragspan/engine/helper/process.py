"""Starts the helper and ends it.

It is started by `posix_spawn` as the system has it. Libraries patch `subprocess` and `os`: a fork by gevent runs the application's
greenlets in the child, so that requests are answered twice. Here no hook of a fork runs, and no code of the application's.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import time
from pathlib import Path

from ragspan.config import process_environment

try:
    import posix  # the module below `os`, which nobody patches
except ImportError:  # Windows
    posix = None  # type: ignore[assignment]

_SOCKET = 3  # the descriptor in the helper
_START = f"""
import os, sys
for name in os.listdir("/dev/fd"):
    try:
        int(name) > {_SOCKET} and os.close(int(name))
    except OSError:
        pass
_, application, *sys.path[:] = sys.argv[1:]
from ragspan.engine.helper.serving import main
main({_SOCKET}, int(application))
"""
"""Imports only what each interpreter has loaded before the search path is set: the working folder may have modules with names of the
standard library."""
_END_OF_A_KILLED, _LOOK_AGAIN = 1.0, 0.005  # seconds
_LEFT_OUT = ("PYTHONPATH", "PYTHONSTARTUP", "PYTHONWARNINGS", "PYTHONINSPECT", "PYTHONPROFILEIMPORTTIME")


class HelperProcess:
    """A helper that has been started. An `OSError` if the system gives no process now, a `RuntimeError` if it never will."""

    def __init__(self) -> None:
        interpreter = _interpreter()
        options = ["-I"] if sys.flags.isolated else ["-s"] if sys.flags.no_user_site else []
        self._has_ended = False
        self.socket, theirs = socket.socketpair()
        self.socket.settimeout(0)
        with theirs:
            try:
                self.pid = posix.posix_spawn(
                    interpreter,
                    [interpreter, *options, "-c", _START, "ragspan-helper", str(os.getpid()), *map(str, sys.path)],
                    {name: value for name, value in process_environment().items() if name not in _LEFT_OUT},
                    file_actions=[
                        (posix.POSIX_SPAWN_DUP2, theirs.fileno(), _SOCKET),
                        (posix.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                        (posix.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),  # what judges print goes nowhere
                    ],
                    setsid=True,
                    setsigmask=(),
                )
            except BaseException:
                self.socket.close()
                raise

    def kill(self) -> None:
        if not self._look():
            os.kill(self.pid, signal.SIGKILL)

    def end(self, timeout: float) -> None:
        """Close the socket, wait for the process to end, and kill it when the time is over."""
        with contextlib.suppress(OSError):  # it is closed already
            self.socket.shutdown(socket.SHUT_RDWR)  # the event loop that would close it may have stopped
        for wait in (timeout, _END_OF_A_KILLED):
            until = time.monotonic() + wait
            while not self._look() and time.monotonic() < until:
                time.sleep(_LOOK_AGAIN)
            self.kill()

    def _look(self) -> bool:
        """Whether it has ended. A number that is not ours any more may be that of another process."""
        try:
            self._has_ended = self._has_ended or posix.waitpid(self.pid, os.WNOHANG)[0] == self.pid
        except ChildProcessError:  # the application, or gevent's loop, waits for all children
            self._has_ended = True
        return self._has_ended


def _interpreter() -> str:
    """The Python that runs this; programs that embed one, or are frozen with one, name themselves instead."""
    if getattr(sys, "frozen", False) or not hasattr(posix, "posix_spawn"):  # frozen, it would start itself again
        raise RuntimeError("this application is frozen, or this system starts no process without a fork")
    embedded = Path(sys.exec_prefix, "bin", f"python{sys.version_info[0]}.{sys.version_info[1]}")  # beside uWSGI, say
    if any(word in Path(sys.executable or "").name.lower() for word in ("python", "pypy")):
        return sys.executable
    if os.access(embedded, os.X_OK):
        return str(embedded)
    raise RuntimeError(f"sys.executable is {sys.executable!r}, which does not look like a Python interpreter")
