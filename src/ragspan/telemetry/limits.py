"""Keeps spans below the SDK's limit of attributes.

A span that is full evicts its oldest attribute for each new one, so writing too much would cost the span its kind, its
record id or a score. ragspan leaves out what matters least instead.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping

from opentelemetry.trace import Span

from ragspan.telemetry.values import AttributeValue, encodable

DEFAULT_LIMIT = 128
"""The limit of OpenTelemetry's specification, for spans that do not tell their own."""


def room_of(span: Span) -> int:
    """How many more attributes the span takes without evicting one."""
    # Neither is in the API. The SDK's spans tell their limit, from the provider or from the environment, only in a
    # private field; those of other providers are taken to have the default.
    limit = getattr(getattr(span, "_limits", None), "max_span_attributes", DEFAULT_LIMIT)
    present = getattr(span, "attributes", None)
    return sys.maxsize if limit is None else max(limit - len(present or ()), 0)


def set_within_limit(span: Span, groups: Iterable[Mapping[str, object]]) -> None:
    """Set the groups of attributes, the most important first, up to the first that does not fit as a whole."""
    if not span.is_recording():
        return
    room = room_of(span)
    chosen: dict[str, AttributeValue] = {}
    for group in groups:
        attributes = encodable(group)
        if len(chosen) + len(attributes) > room:
            break
        chosen.update(attributes)
    span.set_attributes(chosen)
