"""A judge whose service is away. A helper process has to be able to import it."""

from __future__ import annotations

from ragspan.exceptions import JudgeError
from ragspan.judges import OverlapJudge


class AbsentJudge(OverlapJudge):
    """Computes where the embedded judge does, or would: its model cannot be had."""

    def __reduce__(self):
        return AbsentJudge, ()

    async def vote_adherence(self, record, votes):
        raise JudgeError("model_unavailable", "the model cannot be loaded", outage=True)
