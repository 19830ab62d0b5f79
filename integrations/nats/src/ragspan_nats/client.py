"""nats-py's client, with three things put right that it leaves to chance.

- It encrypts a connection only where the server's greeting, which comes in the clear, asks for that. Whoever sits in between can
  leave it out, and would be sent the password.
- Where a server lets us in no longer, each try to connect again leaves its socket open until the garbage is collected.
- A message may have headers that are none, since a server stores whatever it is sent. The client stumbles over some of them, stops
  reading for good, and takes its connection for a live one until two pings have gone without an answer.
"""

from __future__ import annotations

from typing import Any

from nats.aio.client import Client, Srv
from nats.errors import Error


class BrokerClient(Client):
    """A client of nats-py.

    Args:
        must_encrypt: whether nothing may be said in the clear. A server that cannot encrypt is none, then.
    """

    def __init__(self, *, must_encrypt: bool) -> None:
        super().__init__()
        self._must_encrypt = must_encrypt

    async def _connect_to_server(self, s: Srv) -> None:
        if self._transport:
            self._transport.close()  # type: ignore[no-untyped-call]
        await super()._connect_to_server(s)

    async def _process_info(self, info: dict[str, Any], initial_connection: bool = False) -> None:  # noqa: FBT001, FBT002 - the base's signature
        if self._must_encrypt:
            info["tls_required"] = True
        await super()._process_info(info, initial_connection)

    def _connect_command(self) -> bytes:
        if self._must_encrypt and not self._server_info.get("tls_required"):
            raise Error("nats: tls required")
        return super()._connect_command()

    async def _process_headers(self, headers: bytes | None) -> dict[str, str] | None:
        try:
            return await super()._process_headers(headers)
        except Exception:  # noqa: BLE001 - whatever a hostile header brings about; the message is read as one without
            return None
