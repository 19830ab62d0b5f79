"""A Phoenix on this machine with the demo's answers in it, until Ctrl-C: `make phoenix`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from backends.phoenix import Phoenix
from backends.server import free_port

FOLDER = Path(__file__).parents[1] / ".phoenix"
PORT = 6006
PROJECT = "ragspan-demo"


def demo_into(phoenix: Phoenix) -> None:
    """Run the demo, with its texts on the spans and its scores as Phoenix's own."""
    said = {
        "RAGSPAN_EMITTERS": "otel,phoenix",
        "RAGSPAN_CAPTURE_CONTENT": "true",
        "PHOENIX_COLLECTOR_ENDPOINT": phoenix.url,
        "OTEL_EXPORTER_OTLP_ENDPOINT": phoenix.url,
        "OTEL_RESOURCE_ATTRIBUTES": f"openinference.project.name={PROJECT}",
        "NO_PROXY": "127.0.0.1",
    }
    subprocess.run([Path(sys.executable).with_name("ragspan"), "demo"], env=os.environ | said, check=True)


def main() -> None:
    """Start, show, wait, stop."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    phoenix = Phoenix(FOLDER, log=FOLDER / "phoenix.log", port=free_port(PORT))
    try:
        print("Starting Phoenix ...", flush=True)
        phoenix.start()
        demo_into(phoenix)
        print(f"\nThe traces with their scores: {phoenix.url}/projects/{phoenix.project_id(PROJECT)}/spans")
        print("The badly grounded ones: type  annotations['faithfulness'].label == 'fail'  into the filter.")
        print("Ctrl-C stops Phoenix; its data stays in .phoenix/", flush=True)
        signal.pause()
    except KeyboardInterrupt:
        print("\nStopping Phoenix ...")
    finally:
        phoenix.stop()


if __name__ == "__main__":
    main()
