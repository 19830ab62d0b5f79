"""Handlers of LlamaIndex's root dispatcher."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from llama_index_instrumentation import get_dispatcher

from peers.attachment import Attachment


def attached_by(attach: Callable[[], Any], *, settle: Callable[[], object]) -> Attachment:
    """What a call has added to the root dispatcher: span handlers for each run, event handlers around them."""
    root = get_dispatcher()
    span_handlers, event_handlers = list(root.span_handlers), list(root.event_handlers)
    attach()
    added = [one for one in root.span_handlers if not any(one is other for other in span_handlers)]
    listening = [one for one in root.event_handlers if not any(one is other for other in event_handlers)]
    root.span_handlers, root.event_handlers = span_handlers, event_handlers

    @contextlib.contextmanager
    def active() -> Iterator[None]:
        before, root.event_handlers = root.event_handlers, [*event_handlers, *listening]
        try:
            yield
        finally:
            root.event_handlers = before

    return Attachment(handlers=added, active=active, settle=settle)
