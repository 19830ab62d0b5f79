"""Detectors: classifiers and guards that find what the contexts do not support, and answer no other question."""

from ragspan.judges.detectors.detector import Detector, ReferencePair, require_reference_values
from ragspan.judges.detectors.guards import GuardDetector
from ragspan.judges.detectors.span_detector import SpanDetector

__all__ = ["Detector", "GuardDetector", "ReferencePair", "SpanDetector", "require_reference_values"]
