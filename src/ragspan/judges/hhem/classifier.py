"""HHEM, loaded and checked: the probability that contexts support a claim."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass

from ragspan.exceptions import JudgeError
from ragspan.judges.detectors.base import require_reference_values
from ragspan.judges.hhem.files import find_files
from ragspan.judges.hhem.network import Network
from ragspan.judges.hhem.pairs import FittedPair, Pair, PairFinding
from ragspan.judges.hhem.prompt import Prompt
from ragspan.judges.hhem.reference_pairs import REFERENCE_PAIRS

_MAX_REASON = 300  # characters

_logger = logging.getLogger("ragspan")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelChoice:
    """What is loaded, from where to where; equal choices share one loaded model."""

    model: str
    revision: str
    device: str
    batch_size: int
    max_tokens: int
    reference_check: bool


class HHEM:
    """The classifier in memory."""

    def __init__(self, prompt: Prompt, network: Network) -> None:
        self._prompt = prompt
        self._network = network

    def fit(self, pairs: Sequence[Pair]) -> list[FittedPair]:
        return self._prompt.fit(pairs)

    def probabilities(self, prompts: Sequence[Sequence[int]]) -> list[float]:
        return self._network.probabilities(prompts)

    def findings(self, pairs: Sequence[Pair]) -> list[PairFinding]:
        """What it makes of these pairs, in one batch."""
        fitted = self.fit(pairs)
        probabilities = self.probabilities([pair.tokens for pair in fitted])
        return [
            PairFinding(probability=probability, remark=pair.remark)
            for probability, pair in zip(probabilities, fitted, strict=True)
        ]


def load(choice: ModelChoice) -> HHEM:
    """The model, in memory and checked. Takes seconds, and longer if it has to be downloaded.

    Raises:
        JudgeError: it is not to be had, or not what it should be; the message says what to do.
    """
    began = time.monotonic()
    try:
        classifier = _loaded(choice)
        if choice.reference_check:
            require_reference_values(_of_reference_pairs(classifier), REFERENCE_PAIRS, name="hhem")
    except JudgeError:
        raise
    except ImportError as error:
        message = f"HHEM needs packages that are not here: pip install 'ragspan[hhem]' ({error})"
        raise JudgeError("hhem_unavailable", message) from None
    except Exception as error:  # noqa: BLE001 - of torch, of a device's driver, of a damaged file
        reason = " ".join(str(error).split())[:_MAX_REASON]
        message = f"HHEM cannot be loaded onto {choice.device}: {type(error).__name__}: {reason}"
        raise JudgeError("hhem_unavailable", message) from None
    _logger.info("HHEM was loaded onto %s in %.1f s", choice.device, time.monotonic() - began)
    return classifier


def _of_reference_pairs(classifier: HHEM) -> list[float]:
    pairs = [Pair(contexts=(reference.premise,), claim=reference.hypothesis) for reference in REFERENCE_PAIRS]
    return [finding.probability for finding in classifier.findings(pairs)]


def _loaded(choice: ModelChoice) -> HHEM:
    from tokenizers import Tokenizer

    files = find_files(choice.model, choice.revision)
    tokenizer = Tokenizer.from_file(str(files.tokenizer))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return HHEM(Prompt(tokenizer, max_tokens=choice.max_tokens), Network(files.weights, device=choice.device))
