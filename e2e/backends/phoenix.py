"""Arize Phoenix, as the tests start it and ask it."""

from __future__ import annotations

from pathlib import Path

import httpx

from backends.server import Server, free_port

EXECUTABLE = Path(__file__).parents[2] / ".venv-phoenix" / "bin" / "phoenix"


class Phoenix(Server):
    """A Phoenix with its data in a folder, which survives a restart."""

    def __init__(self, folder: Path, *, log: Path, port: int | None = None) -> None:
        port = port or free_port()
        super().__init__(
            command=[str(EXECUTABLE), "serve"],
            environment={
                "PHOENIX_WORKING_DIR": str(folder),
                "PHOENIX_HOST": "127.0.0.1",
                "PHOENIX_PORT": str(port),
                "PHOENIX_GRPC_PORT": str(free_port()),
                "PHOENIX_TELEMETRY_ENABLED": "false",
                "PHOENIX_ALLOW_EXTERNAL_RESOURCES": "false",
                "PHOENIX_DISABLE_AGENT_ASSISTANT": "true",
            },
            url=f"http://127.0.0.1:{port}",
            health="/healthz",
            log=log,
        )
        folder.mkdir(parents=True, exist_ok=True)

    def spans(self, project: str) -> list[dict]:
        """All spans of a project; none while there is no such project."""
        return self._pages(f"/v1/projects/{project}/spans")

    def annotations(self, project: str, span_ids) -> list[dict]:
        """The annotations of these spans."""
        return self._pages(f"/v1/projects/{project}/span_annotations", span_ids=list(span_ids))

    def project_id(self, project: str) -> str:
        """What the UI's addresses call the project."""
        return self._get(f"/v1/projects/{project}").json()["data"]["id"]

    def _pages(self, path: str, **parameters) -> list[dict]:
        found, cursor = [], None
        while True:
            reply = self._get(path, limit=100, cursor=cursor, **parameters)
            if reply.status_code == httpx.codes.NOT_FOUND:
                return found
            page = reply.raise_for_status().json()
            found += page["data"]
            cursor = page.get("next_cursor")
            if cursor is None:
                return found

    def _get(self, path: str, **parameters) -> httpx.Response:
        asked = {name: value for name, value in parameters.items() if value is not None}
        return httpx.get(self.url + path, params=asked, timeout=30, trust_env=False)
