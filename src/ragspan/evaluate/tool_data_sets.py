"""Data sets of answers in Phoenix and MLflow, by their REST APIs: `phoenix:NAME` and `mlflow:NAME`.

A row has a key that is always the same for the same answer, so that one which is there already is not added again.
"""

from __future__ import annotations

import contextlib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from ragspan.evaluate.sources import asked
from ragspan.exceptions import TableError
from ragspan.tools.http import HttpClient
from ragspan.tools.mlflow import tracking_server
from ragspan.tools.phoenix import phoenix_server

KEY = "key"
_AT_ONCE = 100  # rows of a request
_PATIENCE = 60.0  # seconds
_INPUTS, _OUTPUTS = ("question", "contexts"), ("response",)
_MLFLOW = "/api/3.0/mlflow/datasets"
_Row = Mapping[str, Any]


class DataSet(ABC):
    """A data set in a tool. Question and contexts are an example's inputs, the response its output."""

    tool: ClassVar[str]

    def __init__(self, name: str) -> None:
        self.name = name

    def rows(self) -> Iterator[dict[str, Any]]:
        """Its rows, as a table has them.

        Raises:
            TableError: the tool cannot be read, or has no such data set.
        """
        with contextlib.closing(self._client()) as client:
            found = self._stored(client)
        if found is None:
            raise TableError(f"{self.tool} has no data set {self.name!r}")
        yield from found

    def add(self, rows: Sequence[_Row]) -> int:
        """Add the rows whose keys are not there; makes the data set if there is none. Returns how many were added.

        Raises:
            TableError: the tool cannot be read or written; the rows before are there, and another try adds the rest.
        """
        with contextlib.closing(self._client()) as client:
            found = self._stored(client)
            known = {row.get(KEY) for row in found or ()}
            new = [row for row in rows if row[KEY] not in known]
            for first in range(0, len(new), _AT_ONCE):
                self._send(client, new[first : first + _AT_ONCE], is_new=found is None and not first)
            return len(new)

    @abstractmethod
    def _client(self) -> HttpClient: ...

    @abstractmethod
    def _stored(self, client: HttpClient) -> list[dict[str, Any]] | None:
        """The rows that are there; None if there is no such data set."""

    @abstractmethod
    def _send(self, client: HttpClient, rows: Sequence[_Row], *, is_new: bool) -> None: ...


def data_set_of(name: str) -> DataSet | None:
    """The data set that a name such as `phoenix:failures` means; None for any other name."""
    found = re.fullmatch(r"(phoenix|mlflow):(?!//)(.+)", name)
    if found is None:
        return None
    return _PhoenixDataSet(found[2]) if found[1] == "phoenix" else _MLflowDataSet(found[2])


def _parted(row: _Row) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """The inputs, the outputs, and all else of a row."""
    rest = {name: value for name, value in row.items() if name not in (*_INPUTS, *_OUTPUTS)}
    return {name: row[name] for name in _INPUTS}, {name: row[name] for name in _OUTPUTS}, rest


class _PhoenixDataSet(DataSet):
    """What is neither question, contexts nor response is an example's metadata."""

    tool = "phoenix"

    def _client(self) -> HttpClient:
        return HttpClient(phoenix_server(timeout=_PATIENCE))

    def _stored(self, client: HttpClient) -> list[dict[str, Any]] | None:
        found = asked(client, "phoenix", "GET", "/v1/datasets", query={"name": self.name})["data"]
        if not found:
            return None
        rows = []
        for one in asked(client, "phoenix", "GET", f"/v1/datasets/{found[0]['id']}/examples")["data"]["examples"]:
            annotated = {said["name"]: said.get("label") for said in one.get("annotations", ()) if said.get("name")}
            rows.append({**one["metadata"], **one["input"], **one["output"], **annotated})
        return rows

    def _send(self, client: HttpClient, rows: Sequence[_Row], *, is_new: bool) -> None:
        inputs, outputs, metadata = zip(*map(_parted, rows), strict=True)
        body = {"action": "create" if is_new else "append", "name": self.name, "inputs": inputs, "outputs": outputs}
        path, query = "/v1/datasets/upload", {"sync": "true"}
        asked(client, "phoenix", "POST", path, query=query, json={**body, "metadata": metadata})


class _MLflowDataSet(DataSet):
    """What is neither question, contexts nor response is a tag of a record."""

    tool = "mlflow"
    _id: str | None = None

    def _client(self) -> HttpClient:
        return HttpClient(tracking_server(timeout=_PATIENCE))

    def _stored(self, client: HttpClient) -> list[dict[str, Any]] | None:
        search = {"filter_string": f'name = "{self.name}"'}
        found = asked(client, "mlflow", "POST", f"{_MLFLOW}/search", json=search).get("datasets", ())
        self._id = next((str(one["dataset_id"]) for one in found if one["name"] == self.name), None)
        if self._id is None:
            return None
        rows: list[dict[str, Any]] = []
        token: str | None = ""
        while token is not None:
            query = {"max_results": str(_AT_ONCE)} | ({"page_token": token} if token else {})
            page = asked(client, "mlflow", "GET", f"{_MLFLOW}/{self._id}/records", query=query)
            for record in json.loads(page.get("records") or "[]"):
                row: dict[str, Any] = {}
                for name, text in (record.get("tags") or {}).items():
                    with contextlib.suppress(ValueError, TypeError):  # MLflow's own tags are plain texts
                        row[name] = json.loads(text)
                for part in ("expectations", "inputs", "outputs"):
                    row |= record.get(part) or {}
                rows.append(row)
            token = page.get("next_page_token") or None
        return rows

    def _send(self, client: HttpClient, rows: Sequence[_Row], *, is_new: bool) -> None:
        if is_new:
            made = asked(client, "mlflow", "POST", f"{_MLFLOW}/create", json={"name": self.name})
            self._id = made["dataset"]["dataset_id"]
        records = []
        for row in rows:
            inputs, outputs, rest = _parted(row)
            # The key is one of the inputs, by which MLflow tells records apart: two answers to one question are two.
            inputs[KEY] = rest.pop(KEY)
            tags = {name: json.dumps(value, ensure_ascii=False) for name, value in rest.items() if value is not None}
            records.append({"inputs": inputs, "outputs": outputs, "tags": tags})
        asked(client, "mlflow", "POST", f"{_MLFLOW}/{self._id}/records", json={"records": json.dumps(records)})
