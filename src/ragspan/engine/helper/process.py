"""Starts the helper and ends it.

Guarantees:
- It is started by `posix_spawn` as the system has it. Libraries patch `subprocess` and `os`: a fork by gevent runs the application's
  greenlets in the child, so that requests are answered twice. No fork is made here, no hook of a fork runs, and no code of the
  application does.
- The application's main module is not run again, and nothing of the application's is imported: the helper is a new
  interpreter that gets its search path, and starts with `ragspan.engine.helper.serving`.
- It ends when the socket that they share is closed, or its parent is no longer the application: a killed application
  leaves no helper behind. Signals of the terminal and of process managers do not reach it, or are ignored.
- It keeps no descriptor of the application's but stderr.
- The child of a fork inherits the socket and nothing else: the helper stays the parent's.
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
_NAME = "ragspan-helper"
_END_OF_A_KILLED = 1.0  # seconds
_LOOK_AGAIN = 0.005  # seconds
_LEFT_OUT = ("PYTHONPATH", "PYTHONSTARTUP", "PYTHONWARNINGS", "PYTHONINSPECT", "PYTHONPROFILEIMPORTTIME")
"""Variables for the start of the application's own interpreter; the helper gets the search path as it is."""


class NoHelperPossible(RuntimeError):  # noqa: N818 - a fact for the caller, not a mistake
    """There is no interpreter to run, or the system cannot start one without a fork."""


class HelperProcess:
    """A helper that has been started.

    Raises:
        OSError: the system gives no process, or no socket.
        NoHelperPossible: this application can have none.
    """

    def __init__(self) -> None:
        interpreter = _interpreter()
        self._has_ended = False
        self._status: int | None = None
        self.socket, theirs = socket.socketpair()
        with theirs:
            try:
                self.socket.settimeout(0)
                self.pid = posix.posix_spawn(
                    interpreter,
                    [interpreter, *_options(), "-c", _START, _NAME, str(os.getpid()), *map(str, sys.path)],
                    {name: value for name, value in process_environment().items() if name not in _LEFT_OUT},
                    file_actions=[
                        (posix.POSIX_SPAWN_DUP2, theirs.fileno(), _SOCKET),
                        (posix.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                        (posix.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),  # what judges print goes nowhere
                    ],
                    setsid=True,
                    setsigmask=(),
                )
            except BaseException as error:
                self.socket.close()
                if isinstance(error, NotImplementedError):
                    raise NoHelperPossible("this system cannot start a process in a session of its own") from None
                raise

    def kill(self) -> None:
        if not self._look():
            os.kill(self.pid, signal.SIGKILL)

    def end(self, timeout: float) -> int | None:
        """Close the socket, wait for the process to end, and kill it when the time is over.

        Returns:
            Its exit status, negative for a signal. None if it waits for a disk even then, or somebody else has taken the status.
        """
        with contextlib.suppress(OSError):  # it is closed already
            self.socket.shutdown(socket.SHUT_RDWR)  # the event loop that would close it may have stopped
        for wait in (timeout, _END_OF_A_KILLED):
            until = time.monotonic() + wait
            while not self._look() and time.monotonic() < until:
                time.sleep(_LOOK_AGAIN)
            self.kill()
        return self._status

    def _look(self) -> bool:
        """Whether it has ended. A number that is not ours any more may be that of another process."""
        if not self._has_ended:
            try:
                pid, status = posix.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:  # the application, or gevent's loop, waits for all children
                self._has_ended = True
            else:
                self._has_ended = pid == self.pid
                self._status = os.waitstatus_to_exitcode(status) if self._has_ended else None
        return self._has_ended


def _interpreter() -> str:
    """The Python that runs this; programs that embed one, or are frozen with one, name themselves instead."""
    if getattr(sys, "frozen", False):  # whatever its name: it would start itself again
        raise NoHelperPossible("this application is frozen, and has no Python interpreter of its own to start")
    if not hasattr(posix, "posix_spawn"):
        raise NoHelperPossible("this system starts no process without a fork")
    embedded = Path(sys.exec_prefix, "bin", f"python{sys.version_info[0]}.{sys.version_info[1]}")  # beside uWSGI, say
    for path in (sys.executable or "", str(embedded)):
        if any(word in Path(path).name.lower() for word in ("python", "pypy")) and (
            path == sys.executable or os.access(path, os.X_OK)
        ):
            return path
    raise NoHelperPossible(f"sys.executable is {sys.executable!r}, which does not look like a Python interpreter")


def _options() -> list[str]:
    """What keeps the user's own customisation out, if it was kept out of this interpreter."""
    return ["-I"] if sys.flags.isolated else ["-s"] if sys.flags.no_user_site else []
