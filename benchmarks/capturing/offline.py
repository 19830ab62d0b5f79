"""Keeps a process from the network: whatever is not this machine cannot be looked up or connected to."""

from __future__ import annotations

import sys
from typing import Any

_THIS_MACHINE = {"127.0.0.1", "::1", "localhost"}


def stay_offline() -> list[str]:
    """Refuse, from now on and as long as the process lives, what the interpreter is told of.

    Returns:
        The hosts that were refused, a list that grows.
    """
    refused: list[str] = []

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "socket.connect":
            address = arguments[1]
            host = address[0] if isinstance(address, tuple) else None
        elif event in {"socket.getaddrinfo", "socket.gethostbyname"}:
            host = arguments[0]
        else:
            return
        if isinstance(host, bytes):
            host = host.decode()
        if host is not None and host not in _THIS_MACHINE:
            if host not in refused:
                refused.append(str(host))
            raise ConnectionRefusedError(f"{host} is not this machine")

    sys.addaudithook(watch)
    return refused
