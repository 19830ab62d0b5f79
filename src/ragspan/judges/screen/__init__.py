"""The judge without a key: a screen that fails only what it can name."""

from ragspan.judges.screen.judge import OverlapJudge

__all__ = ["OverlapJudge"]
