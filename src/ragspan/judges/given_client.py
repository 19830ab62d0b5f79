"""A client that a user gives with an HTTP client of its own, which ragspan cannot open again."""

from __future__ import annotations

import asyncio
import importlib
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from ragspan.exceptions import JudgeError

if TYPE_CHECKING:
    from openai import AsyncOpenAI


def brings_http_client(client: AsyncOpenAI) -> bool:
    """Whether the client was made with `http_client=`; one with the default one can be copied with another."""
    return type(_http_client_of(client)).__name__ != "AsyncHttpxClientWrapper"


def _http_client_of(client: AsyncOpenAI) -> Any:
    return getattr(client, "_client", None)


class GivenClient:
    """Lends the client as it is.

    Guarantees:
    - Where it keeps connections, it is used in one event loop only: the first one. Connections of another loop fail, or hang.
    """

    def __init__(self, client: AsyncOpenAI) -> None:
        self._client = client
        self._loop: weakref.ref[asyncio.AbstractEventLoop] | None = None

    @asynccontextmanager
    async def borrowed(self) -> AsyncIterator[AsyncOpenAI]:
        """The client.

        Raises:
            JudgeError: it belongs to another event loop, or is closed.
        """
        loop = asyncio.get_running_loop()
        if self._loop is None:
            self._loop = weakref.ref(loop)
        elif self._loop() is not loop and _keeps_connections(self._client):
            raise JudgeError("ClientOfAnotherLoop", f"{_BOUND}, and this is another: {_DO}")
        try:
            yield self._client
        except RuntimeError as error:  # the application has used it in a loop of its own, or closed it
            raise JudgeError("ClientOfAnotherLoop", f"{_BOUND}, or it is closed ({error}): {_DO}") from None


_BOUND = "client= has an http_client= whose connections belong to the event loop that used them first"
_DO = "make client and judge anew for each run, or give a client without http_client=, which works in all of them"


def _keeps_connections(client: AsyncOpenAI) -> bool:
    """Whether requests go over the network: a transport for tests may be used in any loop."""
    http_client = _http_client_of(client)
    library = importlib.import_module(type(http_client).__mro__[-3].__module__.partition(".")[0])
    transport = getattr(http_client, "_transport", None)
    return transport is None or isinstance(transport, library.AsyncHTTPTransport)
