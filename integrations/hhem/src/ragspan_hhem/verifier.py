"""The verifier: each claim is verified by itself, with a probability, in a thread of its own, so that event loops stay free."""

from __future__ import annotations

import asyncio
import logging
import time
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import PurePath

from ragspan.arguments import FLAG, SHARE, TEXT, WHOLE, whole
from ragspan.engine.threads import DaemonThreads
from ragspan.exceptions import JudgeError
from ragspan.judges import ClaimVerdict, Detector
from ragspan.process import keep_inherited, watch_forks
from ragspan.records import RagRecord
from ragspan.throttled_log import log_line
from ragspan_hhem.model import HHEM, MODEL, REVISION, Finding, ModelChoice, error_text, load
from ragspan_hhem.prompt import Pair

_LEAST_TOKENS = 128  # the prompt itself takes some twenty
_PAUSE = 60.0  # seconds after a load that failed


@dataclass(frozen=True, kw_only=True, slots=True)
class HHEMVerifier(Detector):
    """Verifies claims with HHEM-2.1-Open, a classifier by Vectara for English. It needs no key and costs processor time only.

    The model has 110 million parameters. The first claims load it, which takes seconds; equal verifiers in a process share it.
    It is downloaded (440 MB) unless it is in the cache of the Hugging Face hub or in a folder, or `HF_HUB_OFFLINE` is set. No
    code of its repository runs. Before it scores anything, it has to give the published probabilities for the published pairs.
    If it does not, or cannot be loaded, `verify_claims` raises `JudgeError` for a minute, and then tries again.

    Any number of records, threads and event loops share its batches. An engine asks it in its helper process. It pickles;
    a copy, and the child of a fork, loads its own model.

    Needs `pip install 'ragspan[hhem]'`.

    Source: HHEM-2.1-Open's card; as a verifier of single claims, faithfulness with HHEM in Ragas. It is weak at claims that
    need several distant places of the contexts, and weaker with longer contexts.

    Raises:
        ConfigurationError: an argument is wrong.
    """

    cpu_bound = False  # it waits for its own thread
    languages = frozenset({"en"})
    model: str = MODEL
    """A name on the hub, or a folder with `model.safetensors` and, from google/flan-t5-base, `tokenizer.json`."""
    revision: str = REVISION
    """The commit of the model on the hub; not used for a folder."""
    device: str = "cpu"
    """As torch names it: `cpu`, `cuda:0`, `mps`."""
    batch_size: int = 10
    """The most pairs that are computed together, at least 1; long pairs make a batch smaller."""
    threshold: float = 0.5
    """Claims with at least this probability are supported, 0..1."""
    max_tokens: int = 2048
    """Tokens of a claim with its contexts that are read, at least 128. Longer contexts are cut to their beginnings, all to the
    same length, and the explanation says so. The time of a pair grows faster than its tokens."""
    reference_check: bool = True
    """Refuse to score unless the model gives the published probabilities. False is for models of your own."""
    name: str = field(init=False, compare=False)
    """`hhem` for a model with the published probabilities; without that check `hhem:<model>`."""
    _computer: BatchComputer = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        TEXT.check_fields(self, "model", "revision", "device")
        WHOLE.check_fields(self, "batch_size")
        whole(_LEAST_TOKENS).check_fields(self, "max_tokens")
        SHARE.check_fields(self, "threshold")
        FLAG.check_fields(self, "reference_check")
        choice = ModelChoice(**{field.name: getattr(self, field.name) for field in fields(ModelChoice)})
        name = "hhem" if self.reference_check else f"hhem:{PurePath(self.model).name}"
        object.__setattr__(self, "name", name)
        # Two threads at the same time may both make one, and load two models. A lock would be worse: a fork could leave it held.
        object.__setattr__(self, "_computer", _computers.setdefault(choice, BatchComputer(partial(load, choice))))

    def __reduce__(self) -> tuple[partial[HHEMVerifier], tuple[()]]:
        arguments = {field.name: getattr(self, field.name) for field in fields(self) if field.init}
        return partial(HHEMVerifier, **arguments), ()

    async def detect(self, record: RagRecord, texts: Sequence[str]) -> list[ClaimVerdict]:
        """One verdict for each text.

        Raises:
            JudgeError: the model cannot be loaded (`hhem_unavailable`), does not give the published probabilities
                (`hhem_reference_mismatch`), or failed over these texts (`hhem_failed`).
        """
        contexts = tuple(context.text for context in record.contexts or () if context.text.strip())
        pairs = [Pair(contexts, text) for text in texts] if contexts else []
        answer = await asyncio.wrap_future(self._computer.ask(pairs))
        return [
            ClaimVerdict(
                index=index,
                verdict="supported" if found.probability >= self.threshold else "unsupported",
                probability=found.probability,
                explanation=f"the contexts support it with a probability of {found.probability:.2f}"
                + (f" [{found.remark}]" if found.remark else ""),
            )
            for index, found in enumerate(answer)
        ]


_computers: weakref.WeakValueDictionary[ModelChoice, BatchComputer] = weakref.WeakValueDictionary()
"""A computer lives as long as a verifier holds it."""


class BatchComputer:
    """Answers questions in the order in which they come, with a classifier that it loads, once, when it is first needed.

    If the load fails, all questions fail for a minute; the next one tries again. What is cancelled before its turn is not
    computed. The process never waits for the thread.

    Args:
        load: makes the classifier, which may take seconds; raises `JudgeError`.
    """

    def __init__(self, load: Callable[[], HHEM]) -> None:
        self._load = load
        self._begin()
        watch_forks(self, BatchComputer.begin_anew)

    def _begin(self) -> None:
        self._thread = DaemonThreads(1, name="ragspan-hhem")
        # The thread's own:
        self._classifier: HHEM | None = None
        self._failure: JudgeError | None = None
        self._next_load = 0.0

    def begin_anew(self) -> None:
        """In the child of a fork: without the parent's questions, which are kept for good, as is what lies on a device."""
        keep_inherited((self._thread, self._classifier))
        self._begin()

    def ask(self, pairs: Sequence[Pair]) -> Future[list[Finding]]:
        """A future of a finding for each of these pairs, in their order."""
        return self._thread.submit(self._answer, pairs)

    def _answer(self, pairs: Sequence[Pair]) -> list[Finding]:
        if self._classifier is None and time.monotonic() >= self._next_load:
            try:
                self._classifier = self._load()
            except BaseException as error:  # noqa: BLE001 - importing torch runs much code that is not ours
                self._failure = _judge_error(error)
                self._next_load = time.monotonic() + _PAUSE
                log_line(logging.WARNING, "HHEM does not score (%s): %s", self._failure.error_type, self._failure)
        if self._classifier is None:
            assert self._failure is not None  # noqa: S101 - else it was loaded
            raise JudgeError(self._failure.error_type, str(self._failure), outage=True)
        try:
            return self._classifier.findings(pairs)
        except BaseException as error:  # noqa: BLE001 - what torch or a tokenizer raises need not be an `Exception`
            raise _judge_error(error) from None


def _judge_error(error: BaseException) -> JudgeError:
    return (
        error if isinstance(error, JudgeError) else JudgeError("hhem_failed", f"HHEM failed with {error_text(error)}")
    )
