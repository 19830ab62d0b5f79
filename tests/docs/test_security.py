"""The bounds that docs/security.md states are those of the code."""

from __future__ import annotations

from pathlib import Path

from ragspan.delivery import http, sessions
from ragspan.judges import bounded_client
from ragspan_receiver import servers

PAGE = (Path(__file__).parents[2] / "docs" / "security.md").read_text()
MIB = 1024 * 1024


def row(begins):
    (line,) = [line for line in PAGE.splitlines() if line.startswith(f"| {begins}")]
    return line


def test_what_is_read_of_a_reply():
    assert f" {bounded_client.MAX_BODY // MIB} MiB " in row("a judge's endpoint")
    assert f" {sessions.MAX_REPLY // MIB} MiB " in row("a native writer's server")
    assert f" {http._CONNECT_TIMEOUT:g} s to connect" in row("a native writer's server")


def test_what_the_receiver_reads():
    assert f" {servers.MAX_BODY // MIB} MiB a request" in row("who sends spans")
