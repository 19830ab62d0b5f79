"""The published model: its files, its reference pairs, and how it is loaded and checked."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from ragspan.exceptions import JudgeError
from ragspan_hhem.network import Network
from ragspan_hhem.prompt import Pair, Prompt

MODEL = "vectara/hallucination_evaluation_model"
REVISION = "8e4a2e6e96c708cc76c2344f7e4757df2515292c"
FOUNDATION = "google/flan-t5-base"
"""The model that HHEM was made from. HHEM's own files lack its tokenizer."""
FOUNDATION_REVISION = "7bcac572ce56db69c1ea7c8af255c5d7c9672fc2"
WEIGHTS_FILE = "model.safetensors"
TOKENIZER_FILE = "tokenizer.json"

REFERENCES = {
    Pair((premise,), hypothesis): probability
    for probability, premise, hypothesis in (
        (0.0111, "The capital of France is Berlin.", "The capital of France is Paris."),
        (0.6474, "I am in California", "I am in United States."),
        (0.1290, "I am in United States", "I am in California."),
        (0.8969, "A person on a horse jumps over a broken down airplane.", "A person is outdoors, on a horse."),
        (
            *(0.1846, "A boy is jumping on skateboard in the middle of a red bridge."),
            "The boy skates down the sidewalk on a red bridge",
        ),
        (
            *(0.0050, "A man with blond-hair, and a brown shirt drinking out of a public water fountain."),
            "A blond man wearing a brown shirt is reading a book.",
        ),
        (0.0543, "Mark Wahlberg was a fan of Manny.", "Manny was a fan of Mark Wahlberg."),
    )
}
"""Pairs with the probabilities that the card of HHEM-2.1-Open has for them. A correctly loaded model gives the same."""
_TOLERANCE = 0.005
"""Results of processors and devices differ by less than a thousandth, those of a wrong loader by much more."""

_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
_MAX_REASON = 300  # characters
_MAX_TOKENS = 8192
"""Of a batch, unless its first pair alone has more. A token takes some 40 kB while it is computed."""

_logger = logging.getLogger("ragspan")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelChoice:
    """What is loaded, from where, and onto which device. Equal choices share one loaded model."""

    model: str
    revision: str
    device: str
    batch_size: int
    max_tokens: int
    reference_check: bool


class Finding(NamedTuple):
    """The classifier's result for a pair."""

    probability: float
    """That the contexts support the claim, 0..1."""
    remark: str | None = None
    """How much of the pair was read, in words; None if all was."""


class HHEM:
    """The classifier in memory."""

    def __init__(self, prompt: Prompt, network: Network, *, batch_size: int = 1) -> None:
        self._prompt = prompt
        self._network = network
        self._batch_size = batch_size

    def findings(self, pairs: Sequence[Pair]) -> list[Finding]:
        """The findings for these pairs, in their order; pairs and tokens of a batch are bounded."""
        waiting, found = self._prompt.fit(pairs), []
        while waiting:
            tokens = accumulate(len(pair.tokens) for pair in waiting[: self._batch_size])
            count = max(sum(size <= _MAX_TOKENS for size in tokens), 1)
            batch, waiting = waiting[:count], waiting[count:]
            probabilities = self._network.probabilities([pair.tokens for pair in batch])
            found += [Finding(one, pair.remark) for one, pair in zip(probabilities, batch, strict=True)]
        return found


def load(choice: ModelChoice) -> HHEM:
    """The model, in memory and checked. This takes seconds, and longer with a download.

    Raises:
        JudgeError: it cannot be loaded, or does not give the published probabilities; the message says what to do.
    """
    began = time.monotonic()
    try:
        from tokenizers import Tokenizer

        weights, tokenizer_file = find_files(choice.model, choice.revision)
        tokenizer = Tokenizer.from_file(str(tokenizer_file))
        tokenizer.no_padding()
        tokenizer.no_truncation()
        encode = partial(tokenizer.encode, add_special_tokens=False)
        prompt = Prompt(lambda text: encode(text).ids, max_tokens=choice.max_tokens)
        classifier = HHEM(prompt, Network(weights, device=choice.device), batch_size=choice.batch_size)
        if choice.reference_check:
            check_references(classifier)
    except JudgeError:
        raise
    except ImportError as error:
        raise _unavailable(
            f"HHEM needs packages that are not installed: pip install 'ragspan[hhem]' ({error})"
        ) from None
    except Exception as error:  # noqa: BLE001 - from torch, a device's driver or a damaged file
        raise _unavailable(f"HHEM cannot be loaded onto {choice.device}: {error_text(error)}") from None
    _logger.info("HHEM was loaded onto %s in %.1f s", choice.device, time.monotonic() - began)
    return classifier


def check_references(classifier: HHEM, references: Mapping[Pair, float] = REFERENCES) -> None:
    """Raise `JudgeError` unless the pairs get their published probabilities: a loader can be wrong without an error."""
    found = zip(classifier.findings(list(references)), references.values(), strict=True)
    wrong = sum(not abs(one.probability - published) <= _TOLERANCE for one, published in found)  # NaN is wrong, too
    if wrong:
        raise JudgeError(
            "hhem_reference_mismatch",
            f"{wrong} of the {len(references)} published reference pairs get another probability: these are not the weights and the "
            "tokenizer of the published hhem, or this device computes something else; a model of your own has no such pairs",
        )


def find_files(model: str, revision: str) -> tuple[Path, Path]:
    """The weights and the tokenizer of a model. They are downloaded if they are not in the cache and the hub may be asked.

    Args:
        model: a folder, or the name of a model on the hub.
        revision: of the model on the hub; a full commit id that is in the cache needs no request.

    Raises:
        JudgeError: a file is missing; the message says what to do (`hhem_unavailable`).
    """
    folder = Path(model).expanduser()
    if not folder.is_dir():
        if not _HUB_NAME.fullmatch(model):
            raise _unavailable(f"there is no folder {model!r}")
        return _fetched(model, WEIGHTS_FILE, revision), _fetched(FOUNDATION, TOKENIZER_FILE, FOUNDATION_REVISION)
    weights, tokenizer = folder / WEIGHTS_FILE, folder / TOKENIZER_FILE
    if not weights.is_file():
        raise _unavailable(f"the folder {model!r} holds no {WEIGHTS_FILE}")
    if not tokenizer.is_file():  # a copy of HHEM's own files has none
        tokenizer = _fetched(FOUNDATION, TOKENIZER_FILE, FOUNDATION_REVISION)
    return weights, tokenizer


def error_text(error: BaseException) -> str:
    """The error's type and message, in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:_MAX_REASON]}"


def _unavailable(message: str) -> JudgeError:
    return JudgeError("hhem_unavailable", message)


def _fetched(repository: str, name: str, revision: str) -> Path:
    """A file from the cache, or from the hub unless `HF_HUB_OFFLINE` forbids it."""
    from huggingface_hub import hf_hub_download

    try:
        return Path(hf_hub_download(repository, name, revision=revision))
    except Exception as error:  # noqa: BLE001 - from the hub, the network or the disk: the file is missing
        raise _unavailable(
            f"there is no {name} of {repository} here, and it cannot be downloaded ({error_text(error)}). "
            f"Fetch it once where the hub can be reached: hf download {repository} {name} --revision {revision}; "
            f"or give model= a folder with {WEIGHTS_FILE} and {TOKENIZER_FILE}",
        ) from None
