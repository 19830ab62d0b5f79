"""The same metrics over tables: files, data frames, and anything that has rows.

from ragspan.evaluate import evaluate

evaluation = evaluate("answers.csv", ["faithfulness"])
evaluation.summary["faithfulness"].mean
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ragspan.evaluate.evaluation import Evaluation
    from ragspan.evaluate.rows import BadRow, EvaluatedRow, ResultFile
    from ragspan.evaluate.scoring import evaluate
    from ragspan.evaluate.summaries import MetricSummary

__all__ = ["BadRow", "EvaluatedRow", "Evaluation", "MetricSummary", "ResultFile", "evaluate"]

# The command line imports the options of its commands from this package; only a command that runs needs the engine.
_LAZY = {"Evaluation": "evaluation", "MetricSummary": "summaries", "evaluate": "scoring"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'ragspan.evaluate' has no attribute {name!r}")
    return getattr(importlib.import_module(f"ragspan.evaluate.{_LAZY.get(name, 'rows')}"), name)
