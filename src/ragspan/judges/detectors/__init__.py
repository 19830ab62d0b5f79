"""Detectors: classifiers and guards that find what the contexts do not support, and answer no other question."""

from ragspan.judges.detectors.base import Detector, ReferencePair
from ragspan.judges.detectors.guards import GuardDetector
from ragspan.judges.detectors.spans import SpanDetector

__all__ = ["Detector", "GuardDetector", "ReferencePair", "SpanDetector"]
