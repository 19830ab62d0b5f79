"""What a receiver says of the spans that it was sent: `ragspan worker --otlp` shows it on its page."""

from __future__ import annotations

from collections.abc import Iterator

from ragspan.addresses import cause_of, shown_url
from ragspan.counted import counted
from ragspan.doctor import Finding, finding
from ragspan.tools.http import Endpoint, session_for

_PAGE = "/healthz"


def ask_receiver(address: str, seconds: float) -> Iterator[Finding]:
    """What it took, and what of that it could not read or has dropped.

    Raises:
        ConfigurationError: it is not an address.
    """
    endpoint = Endpoint.at("--receiver", address, timeout=seconds)
    shown = shown_url(endpoint.url)
    with session_for(endpoint) as session:
        try:
            reply = session.get(endpoint.url.removesuffix("/v1/traces") + _PAGE, timeout=seconds)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is why the page cannot be read
            cause = cause_of(error) or type(error).__name__
            yield finding("receiver", "receiver_unreachable", "failed", f"{shown} cannot be reached: {cause}")
            return
    try:
        page = reply.json()
        is_ready, not_read = page["ready"], page["not_read"]
    except (ValueError, LookupError, TypeError, RecursionError):
        found = f"{shown} is not a receiver: its page is another one (HTTP {reply.status_code})"
        yield finding("receiver", "no_receiver", "failed", found)
        return
    if not is_ready:
        yield finding("receiver", "receiver_full", "warning", "it takes no spans at the moment")
    found = f"{shown} has found {counted(page.get('records', 0), 'answer')} in {counted(page.get('traces.ended', 0), 'trace')}"
    yield finding("receiver", "receiver_read", "ok", found)
    for what, number in not_read.items():
        yield finding("receiver", "receiver_cannot_read", "warning", f"{what} ({number} so far)")
    for reason, number in page.get("answers", {}).get("dropped", {}).items():
        yield finding("receiver", "receiver_dropped", "warning", f"{counted(number, 'answer')} dropped: {reason}")
