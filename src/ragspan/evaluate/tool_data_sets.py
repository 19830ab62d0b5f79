"""Data sets of answers in Phoenix and MLflow, by their REST APIs: `phoenix:NAME` and `mlflow:NAME`.

A row has a key that is always the same for the same answer, so that one which is there already is not added again.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from ragspan.evaluate.sources import asked
from ragspan.exceptions import TableError
from ragspan.tools.http import MAX_PAGE, HttpClient
from ragspan.tools.mlflow import tracking_server
from ragspan.tools.phoenix import phoenix_server

KEY = "key"
_NAMED = re.compile(r"(phoenix|mlflow):(?!//)(.+)")
_AT_ONCE = 100  # rows of a request
_PATIENCE = 60.0  # seconds
_INPUTS, _OUTPUTS = ("question", "contexts"), ("response",)
_MLFLOW = "/api/3.0/mlflow/datasets"


class DataSet(Protocol):
    """A data set in a tool."""

    def rows(self) -> Iterator[dict[str, Any]]:
        """Its rows, as a table has them.

        Raises:
            TableError: the tool cannot be read, or has no such data set.
        """
        ...

    def add(self, rows: Sequence[Mapping[str, Any]]) -> int:
        """Add the rows whose keys are not there; makes the data set if there is none. Returns how many were added.

        Raises:
            TableError: the tool cannot be read or written; the rows before are there, and another try adds the rest.
        """
        ...


def data_set_of(name: str) -> DataSet | None:
    """The data set that a name such as `phoenix:failures` means; None for any other name."""
    found = _NAMED.fullmatch(name)
    if found is None:
        return None
    return PhoenixDataSet(found[2]) if found[1] == "phoenix" else MLflowDataSet(found[2])


class PhoenixDataSet:
    """A data set in Phoenix: question and contexts are an example's input, the response its output, all else its metadata."""

    def __init__(self, name: str) -> None:
        self._name = name

    def rows(self) -> Iterator[dict[str, Any]]:
        with contextlib.closing(HttpClient(phoenix_server(timeout=_PATIENCE), most=MAX_PAGE)) as client:
            found = self._examples(client)
        if found is None:
            raise TableError(f"phoenix has no data set {self._name!r}")
        for example in found:
            annotated = {one["name"]: one.get("label") for one in example.get("annotations", ()) if one.get("name")}
            yield {**example["metadata"], **example["input"], **example["output"], **annotated}

    def add(self, rows: Sequence[Mapping[str, Any]]) -> int:
        with contextlib.closing(HttpClient(phoenix_server(timeout=_PATIENCE), most=MAX_PAGE)) as client:
            found = self._examples(client)
            known = {example["metadata"].get(KEY) for example in found or ()}
            new = [row for row in rows if row[KEY] not in known]
            for first in range(0, len(new), _AT_ONCE):
                part = new[first : first + _AT_ONCE]
                body = {
                    "action": "create" if found is None and not first else "append",
                    "name": self._name,
                    "inputs": [{name: row[name] for name in _INPUTS} for row in part],
                    "outputs": [{name: row[name] for name in _OUTPUTS} for row in part],
                    "metadata": [
                        {name: value for name, value in row.items() if name not in (*_INPUTS, *_OUTPUTS)}
                        for row in part
                    ],
                }
                path = "/v1/datasets/upload"
                asked(client, "phoenix", "POST", path, query={"sync": "true"}, json=body)
            return len(new)

    def _examples(self, client: HttpClient) -> Sequence[Mapping[str, Any]] | None:
        found = asked(client, "phoenix", "GET", "/v1/datasets", query={"name": self._name})["data"]
        if not found:
            return None
        examples: Sequence[Mapping[str, Any]] = asked(
            client, "phoenix", "GET", f"/v1/datasets/{found[0]['id']}/examples"
        )["data"]["examples"]
        return examples


class MLflowDataSet:
    """An evaluation data set in MLflow: question and contexts are a record's inputs, the response its outputs, all else tags."""

    def __init__(self, name: str) -> None:
        self._name = name

    def rows(self) -> Iterator[dict[str, Any]]:
        with contextlib.closing(HttpClient(tracking_server(timeout=_PATIENCE), most=MAX_PAGE)) as client:
            data_set = self._id(client)
            if data_set is None:
                raise TableError(f"mlflow has no data set {self._name!r}")
            yield from map(_of_record, self._records(client, data_set))

    def add(self, rows: Sequence[Mapping[str, Any]]) -> int:
        with contextlib.closing(HttpClient(tracking_server(timeout=_PATIENCE), most=MAX_PAGE)) as client:
            data_set = self._id(client)
            known = {} if data_set is None else {_of_record(one).get(KEY): 1 for one in self._records(client, data_set)}
            if data_set is None:
                made = asked(client, "mlflow", "POST", f"{_MLFLOW}/create", json={"name": self._name})
                data_set = made["dataset"]["dataset_id"]
            new = [row for row in rows if row[KEY] not in known]
            for first in range(0, len(new), _AT_ONCE):
                records = [_record(row) for row in new[first : first + _AT_ONCE]]
                path = f"{_MLFLOW}/{data_set}/records"
                asked(client, "mlflow", "POST", path, json={"records": json.dumps(records)})
            return len(new)

    def _id(self, client: HttpClient) -> str | None:
        # A name with both kinds of quotes cannot be written in MLflow's language of filters.
        quote = '"' if "'" in self._name else "'"
        search = {"filter_string": f"name = {quote}{self._name}{quote}"}
        found = asked(client, "mlflow", "POST", f"{_MLFLOW}/search", json=search).get("datasets", ())
        return next((str(one["dataset_id"]) for one in found if one["name"] == self._name), None)

    def _records(self, client: HttpClient, data_set: str) -> Iterator[Mapping[str, Any]]:
        token: str | None = ""
        while token is not None:
            query = {"max_results": str(_AT_ONCE)} | ({"page_token": token} if token else {})
            page = asked(client, "mlflow", "GET", f"{_MLFLOW}/{data_set}/records", query=query)
            yield from json.loads(page.get("records") or "[]")
            token = page.get("next_page_token") or None


def _record(row: Mapping[str, Any]) -> dict[str, Any]:
    """The key is one of the inputs, by which MLflow tells records apart: two answers to one question are two."""
    tags = {name: value for name, value in row.items() if name not in (*_INPUTS, *_OUTPUTS, KEY)}
    return {
        "inputs": {**{name: row[name] for name in _INPUTS}, KEY: row[KEY]},
        "outputs": {name: row[name] for name in _OUTPUTS},
        "tags": {name: json.dumps(value, ensure_ascii=False) for name, value in tags.items() if value is not None},
    }


def _of_record(record: Mapping[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for name, text in (record.get("tags") or {}).items():
        with contextlib.suppress(ValueError, TypeError):  # MLflow's own tags are plain texts
            row[name] = json.loads(text)
    return {
        **row,
        **(record.get("expectations") or {}),
        **(record.get("inputs") or {}),
        **(record.get("outputs") or {}),
    }
