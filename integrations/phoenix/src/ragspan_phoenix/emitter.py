"""The emitter that puts scores into Phoenix."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ragspan.config import CaptureContent
from ragspan.delivery import DeliveryOptions, Destination, ScoreWriter
from ragspan.delivery.spans import PatientSpanExporter
from ragspan.outcomes import ScoredRecord
from ragspan.records import SpanAnchor
from ragspan.telemetry.content import ContentPolicy, wrong_option
from ragspan_phoenix.annotations import Annotation, Contents, annotations_of
from ragspan_phoenix.location import locate

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.sdk.trace.export import SpanExporter


class PhoenixAnnotations(ScoreWriter[Annotation]):
    """Writes each score as an annotation of the answer's span, and verdicts on contexts as annotations of documents.

    It stands after the emitter that makes or finds the answer's span, whose spans have to go to the same Phoenix:
    `emitters=[OTelEmitter(), PhoenixAnnotations()]`.

    An annotation has the metric's name, and its `identifier` names the record: to score a record again replaces what was
    written. A metric that does not apply has no annotation. What the overlap judge and HHEM say is of kind `CODE`, what
    a language model says is `LLM`. The metadata has `record_id`, `judge`, `threshold`, `prompt_version`, `fallback`, `late`,
    `refusal`, `details` and `usage`, as far as there is something to say.

    Args:
        base_url: of Phoenix, such as `http://127.0.0.1:6006`. None asks the environment as Phoenix's own client does:
            `PHOENIX_ENDPOINT`, `PHOENIX_COLLECTOR_ENDPOINT`, `OTEL_EXPORTER_OTLP_ENDPOINT`, `PHOENIX_BASE_URL`,
            `PHOENIX_HOST` with `PHOENIX_PORT`; else it is port 6006 of this machine.
        api_key: for a Phoenix that wants one. Where neither it nor `headers` are given: `PHOENIX_API_KEY`.
        headers: for each request; likewise `PHOENIX_CLIENT_HEADERS`.
        identifier: what the annotations' identifiers begin with. Two engines that score the same answers each for itself
            need different ones.
        documents: write verdicts on single contexts, which `context_utilization` and the metrics of chunks have, to the
            documents on the spans of the searches that found them.
        capture_content: True says that users' texts may stand there, so that explanations may quote them. None asks the
            environment, as `OTelEmitter` does.
        explanations: True writes the judges' explanations as they are, which quote users' texts, and False writes none. None
            asks `RAGSPAN_EXPLANATIONS`, and else writes quotes only where the environment captures content, and elsewhere
            counts and places.
        max_explanation_chars: where they are cut, 1 to 8192.
        failures: write a metric that failed as well, without a score, as the label `error`.
        timeout: seconds, more than 0, that Phoenix may take to answer a request.
        retry_window: seconds, more than 0, for which a score is tried again while its span or Phoenix is not there.
        queue_size: annotations that may wait, at least 1; beyond, the oldest are dropped.
        queue_bytes: bytes that they may take, at least 1.
        meter_provider: where `ragspan.deliveries` goes; the global one if None.

    Raises:
        ConfigurationError: an argument or the environment has a value that is not allowed.
    """

    name = "phoenix"

    def __init__(
        self,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        identifier: str = "ragspan",
        documents: bool = True,
        capture_content: CaptureContent | None = None,
        explanations: bool | None = None,
        max_explanation_chars: int = 1000,
        failures: bool = False,
        timeout: float = 30.0,
        retry_window: float = 600.0,
        queue_size: int = 10_000,
        queue_bytes: int = 16 * 1024 * 1024,
        meter_provider: MeterProvider | None = None,
    ) -> None:
        self._location = locate(base_url, api_key, headers)
        self._contents = Contents(
            identifier=identifier,
            documents=documents,
            failures=failures,
            content=ContentPolicy(
                capture_content=capture_content,
                explanations=explanations,
                max_explanation_chars=max_explanation_chars,
            ),
        )
        _check(self._contents, timeout)
        self._timeout = timeout
        self._has_own_meter_provider = meter_provider is not None
        options = DeliveryOptions(queue_size=queue_size, queue_bytes=queue_bytes, retry_window=retry_window)
        super().__init__(options, meter_provider=meter_provider)

    @classmethod
    def at(cls, address: str, *, capture_content: CaptureContent) -> PhoenixAnnotations:
        """The emitter for the Phoenix at this address, for `ragspan.configure(phoenix=address)`."""
        return cls(base_url=address, capture_content=capture_content)

    def span_exporter(self) -> SpanExporter:
        """An exporter that brings spans to the same Phoenix, and keeps them while it is away."""
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        location = self._location
        return PatientSpanExporter(
            OTLPSpanExporter(f"{location.base_url}/v1/traces", headers=dict(location.headers)), exit_timeout=1.0
        )

    def __reduce__(self) -> tuple[Callable[[], PhoenixAnnotations], tuple[()]]:
        """An emitter for another process, with the same key for the same server.

        Raises:
            TypeError: it was given a meter provider, which belongs to this process.
        """
        if self._has_own_meter_provider:
            raise TypeError("its meter provider belongs to this process; leave it out to use the global one")
        make = partial(
            PhoenixAnnotations,
            base_url=self._location.base_url,
            headers=dict(self._location.headers),
            timeout=self._timeout,
            retry_window=self._delivery.retry_window,
            queue_size=self._delivery.queue_size,
            queue_bytes=self._delivery.queue_bytes,
            identifier=self._contents.identifier,
            documents=self._contents.documents,
            failures=self._contents.failures,
            capture_content=self._contents.content.capture_content,
            explanations=self._contents.content.explanations,
            max_explanation_chars=self._contents.content.max_explanation_chars,
        )
        return make, ()

    def items_of(self, scored: ScoredRecord, span: SpanAnchor) -> Sequence[Annotation]:
        return list(annotations_of(scored, span, self._contents))

    def connect(self) -> Destination[Annotation]:
        from ragspan_phoenix.server import PhoenixServer

        return PhoenixServer(self._location, timeout=self._timeout)


def _check(contents: Contents, timeout: float) -> None:
    for name in ("documents", "failures"):  # `"false"` is true to Python
        if not isinstance(getattr(contents, name), bool):
            raise wrong_option(name, getattr(contents, name), "True or False")
    if type(contents.identifier) is not str or not contents.identifier:
        raise wrong_option("identifier", contents.identifier, "a text that is not empty")
    if type(timeout) not in {int, float} or not 0 < timeout < math.inf:
        raise wrong_option("timeout", timeout, "a number of seconds, more than 0")
