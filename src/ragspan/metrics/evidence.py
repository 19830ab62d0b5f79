"""What an answer may rest on, documents and the background beside them: is there enough to judge by?

With documents an answer is judged by these and the background together. Without them it is judged by background where

- no document reached the prompt, and the background supports a claim of the response ("You are welcome." raises no alarm);
- nothing shows which documents did, but all prompts were seen, and a tool's result of some words is in them;
- the program asks for it: `unknown_contexts="prompt"`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from ragspan.judges.judge_protocols import CANNOT_TELL, ClaimVerdict, Named
from ragspan.metrics.metric import JudgedMetric, screen_claims, screen_contexts, screen_response, screen_status
from ragspan.outcomes import NotApplicable, Outcome
from ragspan.records import RagRecord

_LEAST_WORDS = 8
"""Words of a tool's result that may be what an answer rests on."""
_SHOWN = 5
_UNREAD = frozenset({"picture", "provider_search", "unseen_prompt", "too_much"})
"""Why contexts are unknown, where evidence is known to be missing."""


def screen_evidence(record: RagRecord) -> NotApplicable | None:
    """Why there is nothing to judge by: a block, a limit or a template is not the model's answer, or there is no evidence."""
    if record.from_model is False:
        return NotApplicable(reason="not_from_a_model")
    reason = screen_contexts(record)
    if reason is not None and any(one.text.strip() for one in record.background):
        if record.contexts is not None or record.background_is_prompt:
            reason = None
        elif record.prompts_seen and record.contexts_unknown not in _UNREAD:
            told = (one.text.split() for one in record.background if one.kind in {"tool", "history"})
            reason = None if any(len(words) >= _LEAST_WORDS for words in told) else reason
    # A greeting states nothing; without documents, the reason is that there were none.
    states_nothing = None if reason else screen_claims(record)
    return reason or (states_nothing and (screen_contexts(record) or states_nothing))


EVIDENCE_SCREENS = (screen_status, screen_response, screen_evidence)
"""Of the metrics that judge by documents and background."""


def is_judged_anyway(record: RagRecord) -> bool:
    """Whether the background of a record without documents counts although it supports nothing."""
    return record.contexts is None or record.background_is_prompt


def scored_share(
    metric: JudgedMetric[Any],
    record: RagRecord,
    verdicts: Sequence[ClaimVerdict],
    *,
    what: str,
    names: Sequence[str],
    verifier: Named | None = None,
) -> Outcome:
    """The score supported / (supported + unsupported) of claims or citations; what the judge is not sure of counts with its probability.

    So all scores have an order, but one has no label where what the judge is not sure of decides. If that has no probability, the
    judge cannot tell. `names` say in the explanation what each verdict is about.
    """
    counts = Counter(one.verdict for one in verdicts)
    unsure = counts["unsure"]
    worst, best = ((counts["supported"] + more) / len(verdicts) for more in (0, unsure))
    is_open = unsure == len(verdicts) or worst < metric.threshold <= best
    if is_open and any(one.verdict == "unsure" and one.probability is None for one in verdicts):
        return NotApplicable(reason=CANNOT_TELL, detail=_cannot_tell(unsure, verdicts, what))
    told = {"supported": 1.0, "unsupported": 0.0}
    counted = [value for one in verdicts if (value := told.get(one.verdict, one.probability)) is not None]
    return metric.scored(
        record,
        math.fsum(counted) / len(counted),
        explanation=_explanation(verdicts, names, what),
        evidence=verdicts,
        details={what: len(verdicts), "unsure": unsure},
        label=None if is_open else "pass" if worst >= metric.threshold else "fail",
        verifier=verifier,
    )


def compared(verdict: ClaimVerdict) -> str:
    """What a judge that computes probabilities says that it compared, in a few words; empty for other judges."""
    return (verdict.explanation or "") if verdict.probability is not None else ""


def _cannot_tell(unsure: int, verdicts: Sequence[ClaimVerdict], what: str) -> str:
    return f"whether {unsure} of {len(verdicts)} {what} are supported cannot be told"


def _explanation(verdicts: Sequence[ClaimVerdict], names: Sequence[str], what: str) -> str:
    wrong = [name for name, one in zip(names, verdicts, strict=True) if one.verdict == "unsupported"]
    unsure = [one for one in verdicts if one.verdict == "unsure"]
    if wrong:
        more = [f"and {len(wrong) - _SHOWN} more"] if len(wrong) > _SHOWN else []
        return f"{len(wrong)} of {len(verdicts)} {what} unsupported: {'; '.join([*wrong[:_SHOWN], *more])}"
    if unsure:
        return f"{_cannot_tell(len(unsure), verdicts, what).capitalize()}. {compared(unsure[0])}".rstrip()
    weakest = min(verdicts, key=lambda one: math.inf if one.probability is None else one.probability)
    return f"No unsupported {what.removesuffix('s')} was found ({len(verdicts)} compared). {compared(weakest)}".rstrip()
