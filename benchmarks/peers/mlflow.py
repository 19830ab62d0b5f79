"""MLflow's autologging, with a tracking server and asynchronous export, as is its default."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

from peers.attachment import Attachment


def langchain(sink: str) -> Attachment:
    mlflow = connected(sink)

    @contextlib.contextmanager
    def autologged() -> Iterator[None]:
        mlflow.langchain.autolog(silent=True)
        try:
            yield
        finally:
            mlflow.langchain.autolog(disable=True, silent=True)

    return Attachment(active=autologged, settle=mlflow.flush_trace_async_logging)


def llama_index(sink: str) -> Attachment:
    mlflow = connected(sink)
    from peers.dispatcher import attached_by

    return attached_by(lambda: mlflow.llama_index.autolog(silent=True), settle=mlflow.flush_trace_async_logging)


def connected(sink: str) -> Any:
    os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
    import mlflow

    mlflow.set_tracking_uri(sink)
    return mlflow
