"""Detectors: classifiers and guards that find what the contexts do not support, and are no general judges."""

from ragspan.judges.detectors.base import Detector, Finding, ReferencePair, Unit
from ragspan.judges.detectors.guards import GuardDetector
from ragspan.judges.detectors.spans import SpanDetector

__all__ = ["Detector", "Finding", "GuardDetector", "ReferencePair", "SpanDetector", "Unit"]
