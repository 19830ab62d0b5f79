"""The embedded judge."""

from ragspan.judges.overlap.judge import OverlapJudge

__all__ = ["OverlapJudge"]
