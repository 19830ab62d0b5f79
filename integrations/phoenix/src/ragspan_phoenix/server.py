"""Writes annotations to a Phoenix server, by its REST API.

Phoenix's own client is not used: it brings gRPC and an exporter of spans with it, and the packages of its instrumentation,
for what is one request here; and HTTPX, which it speaks through, logs every request at level INFO, "404 Not Found"
included, where Requests is silent.

Nor is Phoenix's asynchronous mode used: it answers 200 and keeps what it was sent in memory, from where it is lost with a
restart, or when the span takes more than ten minutes. With `sync=true` it writes a batch as a whole or not at all, and names
the spans that are not there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import requests

from ragspan.delivery import BatchRefused, Delivered, NotThereYet, Refused, Unavailable, WriteResult
from ragspan.delivery.retry_after import retry_after
from ragspan_phoenix.annotations import Annotation, Kind
from ragspan_phoenix.location import Location

_KINDS: tuple[Kind, ...] = ("span_annotations", "document_annotations")
_CONNECT_TIMEOUT = 5.0  # seconds
_SPAN_ID = re.compile(r"\b[0-9a-f]{16}\b")
_OUT_OF_BOUNDS = re.compile(r"out of bounds for span ([0-9a-f]{16}) \(max: (-?\d+)\)")
_REFUSALS = frozenset({400, 413, 422})
"""Statuses that are about what was sent; 413 is a batch that is too large."""
_MAY_BE_THE_BATCH = frozenset({500})
"""All other errors are about the server, or about who we are there."""

_Numbered: TypeAlias = Mapping[int, Annotation]


class ServerError(Exception):
    """Phoenix failed at a batch; it may do better at a part of it."""


class PhoenixServer:
    """A connection to Phoenix.

    Args:
        location: where it is, and what it has to be shown.
        timeout: seconds that it may take to answer.
    """

    def __init__(self, location: Location, *, timeout: float) -> None:
        self._address = location.base_url + "/v1/"
        self._timeout = (min(timeout, _CONNECT_TIMEOUT), timeout)
        self._session = requests.Session()
        self._session.headers.update(location.headers)
        self._session.auth = _as_it_is

    def write(self, batch: Sequence[Annotation]) -> list[WriteResult]:
        """Write the batch, each kind of annotation by requests of its own."""
        results: dict[int, WriteResult] = {}
        for kind in _KINDS:
            left = {number: item for number, item in enumerate(batch) if item.kind == kind}
            while left:
                found = self._write(kind, left)
                results |= found
                left = {number: item for number, item in left.items() if number not in found}
        return [results[number] for number in range(len(batch))]

    def close(self) -> None:
        self._session.close()

    def _write(self, kind: Kind, items: _Numbered) -> Mapping[int, WriteResult]:
        """What became of at least one of the items; Phoenix has written all of them or none."""
        response = self._post(kind, items)
        if response.status_code == requests.codes.ok:
            if not _is_receipt(response, len(items)):
                raise Unavailable("not_phoenix")  # a login page, a proxy's greeting
            return dict.fromkeys(items, Delivered())
        if response.status_code == requests.codes.not_found and (missing := _missing(response, items)):
            return missing
        if response.status_code == requests.codes.unprocessable_entity and (outside := _outside(response, items)):
            return outside
        raise _failure(response)

    def _post(self, kind: Kind, items: _Numbered) -> requests.Response:
        body = b'{"data":[' + b",".join(item.body for item in items.values()) + b"]}"
        try:
            return self._session.post(
                self._address + kind,
                params={"sync": "true"},
                data=body,
                headers={"Content-Type": "application/json"},
                timeout=self._timeout,
                allow_redirects=False,  # to a login page: a POST would become a GET there
            )
        except requests.ConnectionError as error:
            raise Unavailable(type(error).__name__) from None


def _as_it_is(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """An authentication that changes nothing: without one, Requests looks for another in a .netrc file."""
    return request


def _is_receipt(response: requests.Response, count: int) -> bool:
    """Whether Phoenix says of so many annotations that it has them."""
    try:
        receipt = response.json()
    except ValueError:
        return False
    written = receipt.get("data") if isinstance(receipt, dict) else None
    return isinstance(written, list) and len(written) == count


def _missing(response: requests.Response, items: _Numbered) -> dict[int, WriteResult]:
    """The items whose spans Phoenix says it does not have."""
    spans = set(_SPAN_ID.findall(response.text))
    return {number: NotThereYet() for number, item in items.items() if item.span_id in spans}


def _outside(response: requests.Response, items: _Numbered) -> dict[int, WriteResult]:
    """The items for documents that the span does not have: its attributes do not say so, or not of so many."""
    named = _OUT_OF_BOUNDS.search(response.text)
    if named is None:
        return {}
    span_id, last = named[1], int(named[2])
    return {
        number: Refused("no_such_document")
        for number, item in items.items()
        if item.span_id == span_id and item.position is not None and item.position > last
    }


def _failure(response: requests.Response) -> Exception:
    """What a status says that is no success; the texts of answers may quote what was sent, and are left out."""
    reason = f"http_{response.status_code}"
    if response.status_code in _REFUSALS:
        return BatchRefused(reason)
    if response.status_code in _MAY_BE_THE_BATCH:
        return ServerError(reason)
    return Unavailable(reason, retry_after=retry_after(response.headers.get("retry-after")))
