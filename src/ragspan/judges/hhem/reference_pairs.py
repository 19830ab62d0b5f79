"""Pairs whose probabilities the model's authors published: a model that is loaded right gives the same.

A loader can go wrong without an error. Weights that went to the wrong place, another tokenizer or another prompt still give
numbers between 0 and 1, and nothing else would show that they mean nothing.

Source: the card of HHEM-2.1-Open.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ragspan.exceptions import JudgeError
from ragspan.judges.hhem.pairs import Finding, Pair

_TOLERANCE = 0.005
"""Processors and devices differ by less than a thousandth, loaders that are wrong by much more."""


@dataclass(frozen=True, slots=True)
class ReferencePair:
    premise: str
    hypothesis: str
    probability: float


REFERENCE_PAIRS = (
    ReferencePair("The capital of France is Berlin.", "The capital of France is Paris.", 0.0111),
    ReferencePair("I am in California", "I am in United States.", 0.6474),
    ReferencePair("I am in United States", "I am in California.", 0.1290),
    ReferencePair(
        "A person on a horse jumps over a broken down airplane.", "A person is outdoors, on a horse.", 0.8969
    ),
    ReferencePair(
        "A boy is jumping on skateboard in the middle of a red bridge.",
        "The boy skates down the sidewalk on a red bridge",
        0.1846,
    ),
    ReferencePair(
        "A man with blond-hair, and a brown shirt drinking out of a public water fountain.",
        "A blond man wearing a brown shirt is reading a book.",
        0.0050,
    ),
    ReferencePair("Mark Wahlberg was a fan of Manny.", "Manny was a fan of Mark Wahlberg.", 0.0543),
)


class Classifier(Protocol):
    def findings(self, pairs: Sequence[Pair]) -> list[Finding]: ...


def require_reference_values(classifier: Classifier, references: Sequence[ReferencePair] = REFERENCE_PAIRS) -> None:
    """Raise unless the classifier gives the published probabilities.

    Raises:
        JudgeError: it does not (`hhem_reference_mismatch`).
    """
    pairs = [Pair(passages=(reference.premise,), claim=reference.hypothesis) for reference in references]
    found = [finding.probability for finding in classifier.findings(pairs)]
    differences = [
        abs(probability - reference.probability) for probability, reference in zip(found, references, strict=True)
    ]
    wrong = sum(not difference <= _TOLERANCE for difference in differences)  # NaN is wrong, too
    if wrong:
        raise JudgeError(
            "hhem_reference_mismatch",
            f"{wrong} of the {len(references)} published reference pairs get another probability, by up to "
            f"{max(differences):.3f}: these are not the weights and the tokenizer of HHEM-2.1-Open, or this torch on this "
            "device computes something else; for a model of your own set reference_check=False",
        )
