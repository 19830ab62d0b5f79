"""The processes of the peers cannot leave this machine."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
PROGRAM = """
import json, socket
from peers.offline import stay_offline

refused, errors = stay_offline(), []
with socket.create_server(("127.0.0.1", 0)) as server:
    socket.create_connection(server.getsockname(), timeout=5).close()
for address in (("192.0.2.1", 80), ("192.0.2.1", 443), ("stats.example", 443)):
    try:
        socket.create_connection(address, timeout=5)
    except OSError as error:
        errors.append(str(error))
print(json.dumps({"refused": refused, "errors": errors}))
"""


def test_only_this_machine_can_be_reached_and_each_refusal_is_noted_once():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=BENCHMARKS, capture_output=True, text=True, check=True, timeout=60
    )

    seen = json.loads(done.stdout)

    assert seen["refused"] == ["192.0.2.1", "stats.example"]
    assert len(seen["errors"]) == 3
    assert all("is not this machine" in error for error in seen["errors"])
