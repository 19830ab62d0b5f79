"""The emitter that puts scores into Langfuse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from ragspan.arguments import choice
from ragspan.config import variable
from ragspan.delivery import Annotation, ScoreBackend, ScoreWriter
from ragspan.delivery.backend import Endpoint, basic
from ragspan.exceptions import ConfigurationError

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ragspan.delivery.writer import WriterOptions

_CLOUD = "https://cloud.langfuse.com"
_LEVEL = choice("observation", "trace")


class LangfuseScores(ScoreWriter):
    """Writes each score as a numeric score of the answer's observation, with the explanation as its comment.

    It comes after the emitter that makes or finds the answer's span, whose spans have to go to the same project:
    `emitters=[OTelEmitter(), LangfuseScores()]`. Langfuse takes a score before its trace, and also without it: a score whose
    trace is sampled out on its way is never seen.

    A score has the metric's name. To score a record again replaces what was written. A metric that does not apply has no
    score; one that failed has, with `failures=True`, a categorical score `error`. The metadata has `record_id`, `label`,
    `annotator`, `judge`, `threshold`, `prompt_version`, `fallback`, `late`, `refusal`, `details` and `usage`, as far as there
    is something to say.

    Args:
        base_url: of Langfuse; None takes `LANGFUSE_BASE_URL`, or `LANGFUSE_HOST`, or Langfuse Cloud in the EU.
        public_key: of the project; None takes `LANGFUSE_PUBLIC_KEY`.
        secret_key: likewise `LANGFUSE_SECRET_KEY`.
        level: put scores on the answer's `observation`, or on its whole `trace`.
        environment: Langfuse's environment of the scores; None takes `LANGFUSE_TRACING_ENVIRONMENT`, or leaves it to the server.
        timeout: seconds, more than 0, that Langfuse may take to answer a request.
        options: those of every `ScoreWriter`: `capture_content`, `explanations`, `max_explanation_chars`, `failures`,
            `delivery`, `meter_provider`.

    Raises:
        ConfigurationError: a key is missing, or an argument or the environment has a value that is not allowed.
    """

    name = "langfuse"
    endpoint: Endpoint

    def __init__(
        self,
        *,
        base_url: str | None = None,
        public_key: str | None = None,
        secret_key: str | None = None,
        level: Literal["observation", "trace"] = "observation",
        environment: str | None = None,
        timeout: float = 10.0,
        **options: Unpack[WriterOptions],
    ) -> None:
        name, url = _address(base_url)
        keys = _key("public_key", public_key), _key("secret_key", secret_key)
        self.endpoint = Endpoint.at(name, url, headers={"authorization": basic(*keys)}, timeout=timeout)
        _LEVEL.check("level", level)
        self._level = level
        self._environment = environment or variable("LANGFUSE_TRACING_ENVIRONMENT")
        super().__init__(**options)

    def connect(self) -> ScoreBackend[Annotation]:
        from ragspan.delivery.http import HttpClient
        from ragspan_langfuse.backend import LangfuseServer

        return LangfuseServer(HttpClient(self.endpoint), level=self._level, environment=self._environment)


def _address(base_url: str | None) -> tuple[str, str]:
    """Where the address comes from, and the address."""
    given = {"base_url": base_url, **{name: variable(name) for name in ("LANGFUSE_BASE_URL", "LANGFUSE_HOST")}}
    return next(((name, url) for name, url in given.items() if url is not None), ("base_url", _CLOUD))


def _key(argument: str, given: str | None) -> str:
    name = f"LANGFUSE_{argument.upper()}"
    key = given or variable(name)
    if key is None:
        raise ConfigurationError(f"a key for Langfuse is missing: set {name}, or give {argument}")
    return key
