"""The bounds that docs/security.md states are those of the code."""

from __future__ import annotations

from pathlib import Path

from ragspan.tools import http
from ragspan_receiver import receiver, servers

PAGE = (Path(__file__).parents[2] / "docs" / "security.md").read_text()
MIB = 1024 * 1024


def row(begins):
    (line,) = [line for line in PAGE.splitlines() if line.startswith(f"| {begins}")]
    return line


def test_what_is_read_of_a_reply():
    assert f" {http.MAX_REPLY // MIB} MiB " in row("a native writer's server")
    assert f" {http._CONNECT_TIMEOUT:g} s to connect" in row("a native writer's server")


def test_what_the_receiver_reads():
    by_http = row("who sends spans")
    assert f" {receiver.MAX_BODY // MIB} MiB a request, {receiver.MAX_JSON // MIB} MiB as JSON " in by_http
    assert f" {servers._PATIENCE:g} s for the body" in by_http
    assert f" {receiver.MAX_BODY // MIB} MiB a message" in row("who sends them")
    assert f"hold {receiver._MAX_HELD // MIB} MiB at most" in PAGE
