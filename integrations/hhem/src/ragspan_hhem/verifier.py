"""Claims verified by HHEM, one at a time, with a probability for each."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import PurePath
from typing import Literal, TypeAlias, get_args

from ragspan.arguments import FLAG, SHARE, TEXT, WHOLE, choice, whole
from ragspan.judges.detectors.base import Detector, Finding, Unit
from ragspan.records import RagRecord
from ragspan_hhem.batching import BatchComputer
from ragspan_hhem.model import MODEL, REFERENCE_PAIRS, REVISION, ModelChoice, load
from ragspan_hhem.prompt import Pair, PairFinding

Premise: TypeAlias = Literal["joined", "best_context"]

_LEAST_TOKENS = 128  # the prompt itself takes some twenty


@dataclass(frozen=True, kw_only=True, slots=True)
class HHEMVerifier(Detector):
    """Verifies claims with HHEM-2.1-Open, a classifier that Vectara published: English, no key, no cost but processor time.

    The model, of 110 million parameters, is loaded with the first claims, in seconds, and once for all verifiers in a process that want the same. It is
    downloaded (440 MB) unless it is in the cache of the Hugging Face hub, or in a folder, or `HF_HUB_OFFLINE` is set. No
    code of its repository runs. Before it scores anything, it has to give the published probabilities for the published
    pairs; if it does not, or cannot be loaded, `verify_claims` raises `JudgeError`: at once for a minute, and then it tries
    again.

    Any number of records, threads and event loops share its batches. An engine asks it in its helper process. It pickles;
    a copy, and the child of a fork, loads a model of its own.

    Needs `pip install 'ragspan[hhem]'`.

    Source: HHEM-2.1-Open's card; as a verifier of single claims, faithfulness with HHEM in Ragas. It was trained on whole
    contexts: claims that need several distant places of the contexts are its weak spot, and longer contexts make it weaker.

    Raises:
        ConfigurationError: an argument is wrong.
    """

    cpu_bound = False  # it waits for a thread of its own
    languages = frozenset({"en"})
    reference_pairs = REFERENCE_PAIRS
    _is_checked = True  # where it is loaded
    model: str = MODEL
    """A name on the hub, or a folder with `model.safetensors` and, from google/flan-t5-base, `tokenizer.json`."""
    revision: str = REVISION
    """The commit of the model on the hub; a folder has none."""
    device: str = "cpu"
    """As torch names it: `cpu`, `cuda:0`, `mps`."""
    batch_size: int = 10
    """Pairs that are computed together, at least 1; fewer when they are long."""
    threshold: float = 0.5
    """Claims with at least this probability are supported, 0..1."""
    premise: Premise = "joined"
    """What a claim is held against: `"joined"`, all contexts as one text, or `"best_context"`, each context by itself, of
    which the best counts. The latter reads long contexts better, costs as many times more, and cannot put two contexts
    together."""
    max_tokens: int = 2048
    """Tokens of a claim with its contexts that are read, at least 128. What is longer is cut, and the explanation says
    so: contexts to their beginnings, all to the same length. The time that a pair takes grows faster than its tokens."""
    reference_check: bool = True
    """Refuse to score unless the published probabilities are met. False is for models of your own."""
    name: str = field(init=False, compare=False)
    """`hhem`, which only a model with the published probabilities is called; without that check `hhem:<model>`."""
    _computer: BatchComputer = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._check_arguments()
        choice = ModelChoice(
            model=self.model,
            revision=self.revision,
            device=self.device,
            batch_size=self.batch_size,
            max_tokens=self.max_tokens,
            reference_check=self.reference_check,
        )
        name = "hhem" if self.reference_check else f"hhem:{PurePath(self.model).name}"
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "_computer", _computer_for(choice))

    def __reduce__(self) -> tuple[partial[HHEMVerifier], tuple[()]]:
        arguments = {field.name: getattr(self, field.name) for field in fields(self) if field.init}
        return partial(HHEMVerifier, **arguments), ()

    async def detect(self, record: RagRecord, units: Sequence[Unit]) -> list[Finding]:
        """One finding for each unit; none at all if the record has no context with text.

        Raises:
            JudgeError: the model cannot be loaded (`hhem_unavailable`), does not give the published probabilities
                (`hhem_reference_mismatch`), or failed over these claims (`hhem_failed`).
        """
        contexts = {index: context.text for index, context in enumerate(record.contexts or ()) if context.text.strip()}
        if not units or not contexts:
            return []
        premises = [tuple(contexts.values())] if self.premise == "joined" else [(text,) for text in contexts.values()]
        pairs = [Pair(contexts=premise, claim=unit.text) for unit in units for premise in premises]
        found = await asyncio.wrap_future(self._computer.ask(pairs))
        by_unit = [found[start : start + len(premises)] for start in range(0, len(pairs), len(premises))]
        return [
            self._finding(index, dict(zip(contexts, of_unit, strict=False))) for index, of_unit in enumerate(by_unit)
        ]

    def _finding(self, index: int, found: dict[int, PairFinding]) -> Finding:
        """The best of what is found, which is by context, or the only one, which is of all contexts."""
        context, best = max(found.items(), key=lambda item: item[1].probability)
        if self.premise == "joined":
            explanation = f"the contexts support it with a probability of {best.probability:.2f}"
        else:
            explanation = f"context {context + 1} supports it best, with a probability of {best.probability:.2f}"
        return Finding(
            unit=index,
            supported=best.probability >= self.threshold,
            probability=best.probability,
            context=None if self.premise == "joined" else context,
            explanation=f"{explanation} [{best.remark}]" if best.remark else explanation,
        )

    def _check_arguments(self) -> None:
        TEXT.check_fields(self, "model", "revision", "device")
        WHOLE.check_fields(self, "batch_size")
        whole(_LEAST_TOKENS).check_fields(self, "max_tokens")
        SHARE.check_fields(self, "threshold")
        choice(*get_args(Premise)).check_fields(self, "premise")
        FLAG.check_fields(self, "reference_check")


def _computer_for(choice: ModelChoice) -> BatchComputer:
    """The one that serves this choice, as long as somebody holds it.

    Two threads that come here at once may both make one, and load two models. A lock would cost more: a fork could leave
    it held.
    """
    return _computers.setdefault(choice, BatchComputer(partial(load, choice), batch_size=choice.batch_size))


_computers: weakref.WeakValueDictionary[ModelChoice, BatchComputer] = weakref.WeakValueDictionary()
