"""Pairs whose probabilities the model's authors published: a model that is loaded right gives the same.

Source: the card of HHEM-2.1-Open.
"""

from __future__ import annotations

from ragspan.judges.detectors.base import ReferencePair

REFERENCE_PAIRS = (
    ReferencePair(
        premise="The capital of France is Berlin.", hypothesis="The capital of France is Paris.", probability=0.0111
    ),
    ReferencePair(premise="I am in California", hypothesis="I am in United States.", probability=0.6474),
    ReferencePair(premise="I am in United States", hypothesis="I am in California.", probability=0.1290),
    ReferencePair(
        premise="A person on a horse jumps over a broken down airplane.",
        hypothesis="A person is outdoors, on a horse.",
        probability=0.8969,
    ),
    ReferencePair(
        premise="A boy is jumping on skateboard in the middle of a red bridge.",
        hypothesis="The boy skates down the sidewalk on a red bridge",
        probability=0.1846,
    ),
    ReferencePair(
        premise="A man with blond-hair, and a brown shirt drinking out of a public water fountain.",
        hypothesis="A blond man wearing a brown shirt is reading a book.",
        probability=0.0050,
    ),
    ReferencePair(
        premise="Mark Wahlberg was a fan of Manny.", hypothesis="Manny was a fan of Mark Wahlberg.", probability=0.0543
    ),
)
