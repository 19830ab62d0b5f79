"""Calls code that is not ours: captures, emitters, loggers. The one place where what they raise is caught.

`SystemExit` and `KeyboardInterrupt` are caught as well. Python delivers a real Ctrl-C to the main thread only, so what
comes up in the worker was raised by the code that it called, and must not stop the worker.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

_T = TypeVar("_T")


def attempt(call: Callable[..., _T], *args: Any) -> tuple[_T, None] | tuple[None, BaseException]:
    """What the call returned, or what it raised."""
    try:
        return call(*args), None
    except BaseException as error:  # noqa: BLE001 - the caller counts it; nothing may spread into the worker
        return None, error
