"""MLflow's tracking server, as the tests start it and ask it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import httpx

from backends.server import Server, free_port

EXECUTABLE = Path(__file__).parents[2] / ".venv-mlflow" / "bin" / "mlflow"


class MLflow(Server):
    """An MLflow with its data in a folder, which survives a restart."""

    def __init__(self, folder: Path, *, log: Path) -> None:
        port = free_port()
        super().__init__(
            command=[
                str(EXECUTABLE), "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1",
                "--backend-store-uri", f"sqlite:///{folder}/mlflow.db", "--artifacts-destination", f"{folder}/artifacts",
            ],
            environment={
                "MLFLOW_DISABLE_TELEMETRY": "true",
                "DO_NOT_TRACK": "true",
                "PATH": f"{EXECUTABLE.parent}:/usr/bin:/bin",
            },
            url=f"http://127.0.0.1:{port}",
            health="/health",
            log=log,
        )  # fmt: skip
        folder.mkdir(parents=True, exist_ok=True)

    def experiment_id(self, name: str) -> str:
        reply = self._ask("GET", "/api/2.0/mlflow/experiments/get-by-name", params={"experiment_name": name})
        return reply["experiment"]["experiment_id"]

    def traces(self, experiment: str, condition: str | None = None) -> list[dict]:
        """The traces of an experiment that satisfy a condition; none while there is no such experiment."""
        try:
            number = self.experiment_id(experiment)
        except httpx.HTTPStatusError as error:
            if error.response.status_code == httpx.codes.NOT_FOUND:
                return []
            raise
        place = {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": number}}
        body = {"locations": [place], "max_results": 500, "filter": condition}
        return self._ask("POST", "/ajax-api/3.0/mlflow/traces/search", json=body).get("traces", [])

    def assessments(self, trace_id: str) -> list[dict]:
        """Those of one trace."""
        trace = self._ask("GET", f"/api/3.0/mlflow/traces/{trace_id}")["trace"]
        return trace["trace_info"].get("assessments", [])

    def found_by_its_client(self, experiment: str, condition: str) -> list[str]:
        """The ids of the traces that `mlflow.search_traces` finds, in a Python that has MLflow."""
        done = subprocess.run(
            [EXECUTABLE.with_name("python"), "-c", _SEARCH, experiment, condition],
            env=os.environ
            | {"MLFLOW_TRACKING_URI": self.url, "MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true"},
            capture_output=True,
            check=True,
            text=True,
            timeout=120,
        )
        return json.loads(done.stdout)

    def _ask(self, method: str, path: str, **arguments) -> dict:
        reply = httpx.request(method, self.url + path, timeout=30, trust_env=False, **arguments)
        return reply.raise_for_status().json()


_SEARCH = """
import json, sys, mlflow
experiment = mlflow.get_experiment_by_name(sys.argv[1])
found = mlflow.search_traces(
    locations=[experiment.experiment_id], filter_string=sys.argv[2], return_type="list"
)
print(json.dumps([trace.info.trace_id for trace in found]))
"""
