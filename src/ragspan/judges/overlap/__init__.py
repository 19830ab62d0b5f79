"""The embedded judge."""

from ragspan.judges.overlap.overlap_judge import OverlapJudge

__all__ = ["OverlapJudge"]
