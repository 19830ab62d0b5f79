"""Where the model's two files are: in a folder, in the cache of the Hugging Face hub, or on the hub."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from ragspan.exceptions import JudgeError

MODEL = "vectara/hallucination_evaluation_model"
REVISION = "8e4a2e6e96c708cc76c2344f7e4757df2515292c"
FOUNDATION = "google/flan-t5-base"
"""What HHEM is made from. Its tokenizer is not among HHEM's own files."""
FOUNDATION_REVISION = "7bcac572ce56db69c1ea7c8af255c5d7c9672fc2"
WEIGHTS_FILE = "model.safetensors"
TOKENIZER_FILE = "tokenizer.json"

_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
_MAX_REASON = 200  # characters


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFiles:
    weights: Path
    tokenizer: Path


def find_files(model: str, revision: str) -> ModelFiles:
    """The files of a model, downloaded if they are not here yet and the hub may be asked.

    Args:
        model: a folder, or the name of a model on the hub.
        revision: of the model on the hub; a commit's full id is never asked for again once it is in the cache.

    Raises:
        JudgeError: they cannot be had; the message says what to do (`hhem_unavailable`).
    """
    folder = Path(model).expanduser()
    if not folder.is_dir():
        if not _HUB_NAME.fullmatch(model):
            raise JudgeError("hhem_unavailable", f"there is no folder {model!r}")
        return ModelFiles(
            weights=_fetched(model, WEIGHTS_FILE, revision),
            tokenizer=_fetched(FOUNDATION, TOKENIZER_FILE, FOUNDATION_REVISION),
        )
    weights, tokenizer = folder / WEIGHTS_FILE, folder / TOKENIZER_FILE
    if not weights.is_file():
        raise JudgeError("hhem_unavailable", f"the folder {model!r} holds no {WEIGHTS_FILE}{_explanation_of(folder)}")
    if not tokenizer.is_file():  # a copy of HHEM's own files has none
        tokenizer = _fetched(FOUNDATION, TOKENIZER_FILE, FOUNDATION_REVISION)
    return ModelFiles(weights=weights, tokenizer=tokenizer)


def _explanation_of(folder: Path) -> str:
    """Why weights that lie there in another form are not read."""
    if any(folder.glob("model-*.safetensors")):
        return ", but weights in several files; they have to be saved as one"
    if any(folder.glob("*.bin")):
        return ", but weights as a pickle, and to read one is to run its code; they have to be saved as safetensors"
    return ""


def _fetched(repository: str, name: str, revision: str) -> Path:
    """A file from the cache, else from the hub, unless `HF_HUB_OFFLINE` says not to ask it."""
    from huggingface_hub import hf_hub_download

    try:
        return Path(hf_hub_download(repository, name, revision=revision))
    except Exception as error:  # noqa: BLE001 - of the hub, the network, the disk: all mean that the file is not here
        reason = " ".join(str(error).split())[:_MAX_REASON]
        raise JudgeError(
            "hhem_unavailable",
            f"there is no {name} of {repository} here, and it cannot be downloaded ({type(error).__name__}: {reason}). "
            f"Fetch it once where the hub can be reached: hf download {repository} {name} --revision {revision}; "
            f"or give model= a folder with {WEIGHTS_FILE} and {TOKENIZER_FILE}",
        ) from None
