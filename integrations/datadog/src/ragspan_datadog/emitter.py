"""The emitter that puts scores into Datadog LLM Observability."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragspan.config import variable
from ragspan.delivery import Annotation, ScoreBackend, ScoreWriter
from ragspan.delivery.backend import Endpoint
from ragspan.exceptions import ConfigurationError

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ragspan.delivery.writer import WriterOptions

_SITE = "datadoghq.com"
_APP_NAMES = ("DD_LLMOBS_ML_APP", "DD_SERVICE", "OTEL_SERVICE_NAME")
"""In this order. Datadog names the application of OpenTelemetry's spans by their service."""


class DatadogEvaluations(ScoreWriter):
    """Writes each score as an evaluation of the answer's span in LLM Observability, with the explanation as its reasoning.

    It comes after the emitter that makes or finds the answer's span: `emitters=[OTelEmitter(), DatadogEvaluations()]`. The
    spans have to reach LLM Observability by OTLP. Datadog accepts an evaluation before its span, and joins them later; one
    whose span is sampled out on its way is never seen.

    An evaluation has the metric's name as its label, of ASCII letters, digits and underscores, and `pass` or `fail` as its
    assessment. A metric that does not apply has none; one that failed has, with `failures=True`, the type of its error under
    the label `<metric>_error`. To score a record again adds an evaluation: Datadog has nothing that replaces one.

    Args:
        site: of Datadog; None takes `DD_SITE`, or `datadoghq.com`.
        api_key: None takes `DD_API_KEY`.
        ml_app: the application in LLM Observability; None takes `DD_LLMOBS_ML_APP`, `DD_SERVICE` or `OTEL_SERVICE_NAME`.
        base_url: of an API in place of the site's, such as a proxy; None takes `DD_LLMOBS_OVERRIDE_ORIGIN`.
        timeout: seconds, more than 0, that Datadog may take to answer a request.
        options: those of every `ScoreWriter`: `capture_content`, `explanations`, `max_explanation_chars`, `failures`,
            `delivery`, `meter_provider`.

    Raises:
        ConfigurationError: the key or the application is missing, or an argument or the environment has a value that is not
            allowed.
    """

    name = "datadog"
    endpoint: Endpoint

    def __init__(
        self,
        *,
        site: str | None = None,
        api_key: str | None = None,
        ml_app: str | None = None,
        base_url: str | None = None,
        timeout: float = 10.0,
        **options: Unpack[WriterOptions],
    ) -> None:
        key = api_key or variable("DD_API_KEY")
        if key is None:
            raise ConfigurationError("a key for Datadog is missing: set DD_API_KEY, or give api_key")
        self.endpoint = Endpoint.at(*_address(site, base_url), headers={"dd-api-key": key}, timeout=timeout)
        self._ml_app = ml_app or _named_app()
        super().__init__(**options)

    def connect(self) -> ScoreBackend[Annotation]:
        from ragspan.delivery.http import HttpClient
        from ragspan_datadog.backend import DatadogIntake

        return DatadogIntake(HttpClient(self.endpoint), ml_app=self._ml_app)


def _address(site: str | None, base_url: str | None) -> tuple[str, str]:
    """Where the address comes from, and the address."""
    if base_url is not None:
        return "base_url", base_url
    override = variable("DD_LLMOBS_OVERRIDE_ORIGIN")
    if override is not None and site is None:
        return "DD_LLMOBS_OVERRIDE_ORIGIN", override
    return "site" if site else "DD_SITE", f"https://api.{site or variable('DD_SITE') or _SITE}"


def _named_app() -> str:
    found = next((app for app in map(variable, _APP_NAMES) if app is not None), None)
    if found is None:
        raise ConfigurationError("LLM Observability's application has no name: set DD_LLMOBS_ML_APP, or give ml_app")
    return found
