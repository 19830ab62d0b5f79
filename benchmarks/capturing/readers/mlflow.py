"""MLflow's autologging, read by the functions that its RetrievalGroundedness scorer calls.

`mlflow.genai.utils.trace_utils`: `extract_request_from_trace`, `extract_response_from_trace` and
`extract_retrieval_context_from_trace`, which takes the RETRIEVER spans that lie in no other. The scorer judges the
documents of each of these spans by themselves; here they are taken together. Traces go to a store in the folder in
which the process runs. A trace in state ERROR is taken to be known as unfinished.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from capturing.grading import Seen

if TYPE_CHECKING:
    from mlflow.entities import Trace


class MLflow:
    callbacks: Sequence[Any] = ()

    def __init__(self, framework: str) -> None:
        os.environ["MLFLOW_ENABLE_ASYNC_TRACE_LOGGING"] = "false"
        os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
        os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
        import mlflow

        mlflow.set_tracking_uri(f"file://{Path.cwd()}/traces")
        autologging = mlflow.langchain if framework == "langchain" else mlflow.llama_index
        autologging.autolog()

    def begin(self) -> None:
        """It stays attached."""

    def seen(self) -> list[Seen]:
        import mlflow

        traces = mlflow.search_traces(return_type="list", max_results=1000)
        if traces:  # those that stay would have to be read again each time
            mlflow.MlflowClient().delete_traces("0", trace_ids=[trace.info.trace_id for trace in traces])
        return [_seen(trace) for trace in traces]


def _seen(trace: Trace) -> Seen:
    from mlflow.genai.utils import trace_utils

    retrieved = trace_utils.extract_retrieval_context_from_trace(trace)
    root = trace.data.spans[0] if trace.data.spans else None
    return Seen(
        question=_extracted(trace_utils.extract_request_from_trace, trace, root and root.inputs),
        contexts=tuple(str(chunk.get("content")) for chunks in retrieved.values() for chunk in chunks),
        response=_extracted(trace_utils.extract_response_from_trace, trace, root and root.outputs),
        is_unfinished=trace.info.state.value == "ERROR",
    )


def _extracted(extract: Callable[[Trace], str | None], trace: Trace, raw: Any) -> Any:
    """What the scorer's function makes of it; the value itself where that fails, as on pairs of role and text."""
    try:
        return extract(trace)
    except AttributeError:
        return raw


def attach(framework: str) -> MLflow:
    return MLflow(framework)
