"""Data sets of answers in Phoenix and MLflow, by their REST APIs: `phoenix:NAME` and `mlflow:NAME`.

Question and contexts are an example's inputs, the response its output. A row has a key that is always the same for the same
answer, so that one which is there already is not added again.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from ragspan.evaluate.sources import asked
from ragspan.exceptions import TableError
from ragspan.tools.http import HttpClient
from ragspan.tools.mlflow import tracking_server
from ragspan.tools.phoenix import phoenix_server

KEY = "key"
_AT_ONCE = 100  # rows of a request
_PATIENCE = 60.0  # seconds
_MLFLOW = "/api/3.0/mlflow/datasets"
_Rows: TypeAlias = list[dict[str, Any]]
_Parts: TypeAlias = tuple[dict[str, Any], dict[str, Any], dict[str, Any]]
"""The inputs, the outputs, and all else of a row."""


def data_set_of(name: str) -> tuple[str, str] | None:
    """The tool and the data set that a name such as `phoenix:failures` means; None for any other name."""
    found = re.fullmatch(r"(phoenix|mlflow):(?!//)(.+)", name)
    return (found[1], found[2]) if found else None


def stored_rows(tool: str, name: str) -> Iterator[dict[str, Any]]:
    """Its rows, as a table has them; a `TableError` if the tool cannot be read, or has no such data set."""
    server, stored, _ = _TOOLS[tool]
    with contextlib.closing(HttpClient(server(timeout=_PATIENCE))) as client:
        identifier, found = stored(client, name)
    if identifier is None:
        raise TableError(f"{tool} has no data set {name!r}")
    yield from found


def add_rows(tool: str, name: str, rows: Sequence[Mapping[str, Any]]) -> int:
    """Add the rows whose keys are not there; makes the data set if there is none. Returns how many were added.

    Raises:
        TableError: the tool cannot be read or written; the rows before are there, and another try adds the rest.
    """
    server, stored, send = _TOOLS[tool]
    with contextlib.closing(HttpClient(server(timeout=_PATIENCE))) as client:
        identifier, found = stored(client, name)
        known = {row.get(KEY) for row in found}
        new = [row for row in rows if row[KEY] not in known]
        for first in range(0, len(new), _AT_ONCE):
            parts: list[_Parts] = []
            for row in new[first : first + _AT_ONCE]:
                rest = dict(row)
                inputs = {name: rest.pop(name) for name in ("question", "contexts")}
                parts.append((inputs, {"response": rest.pop("response")}, rest))
            identifier = send(client, name, identifier, parts)
        return len(new)


def _phoenix_rows(client: HttpClient, name: str) -> tuple[str | None, _Rows]:
    """The data set's id, None if there is no such one, and its rows; all that people annotated is a column, too."""
    found = asked(client, "phoenix", "GET", "/v1/datasets", query={"name": name})["data"]
    if not found:
        return None, []
    rows = []
    for one in asked(client, "phoenix", "GET", f"/v1/datasets/{found[0]['id']}/examples")["data"]["examples"]:
        annotated = {said["name"]: said.get("label") for said in one.get("annotations", ()) if said.get("name")}
        rows.append({**one["metadata"], **one["input"], **one["output"], **annotated})
    return str(found[0]["id"]), rows


def _add_to_phoenix(client: HttpClient, name: str, identifier: str | None, rows: Sequence[_Parts]) -> str:
    inputs, outputs, metadata = zip(*rows, strict=True)
    body = {"name": name, "inputs": inputs, "outputs": outputs, "metadata": metadata}
    body["action"] = "append" if identifier else "create"
    asked(client, "phoenix", "POST", "/v1/datasets/upload", query={"sync": "true"}, json=body)
    return name


def _mlflow_rows(client: HttpClient, name: str) -> tuple[str | None, _Rows]:
    search = {"filter_string": f'name = "{name}"'}
    found = asked(client, "mlflow", "POST", f"{_MLFLOW}/search", json=search).get("datasets", ())
    identifier = next((str(one["dataset_id"]) for one in found if one["name"] == name), None)
    rows: _Rows = []
    token = None if identifier is None else ""
    while token is not None:
        query = {"max_results": str(_AT_ONCE)} | ({"page_token": token} if token else {})
        page = asked(client, "mlflow", "GET", f"{_MLFLOW}/{identifier}/records", query=query)
        for record in json.loads(page.get("records") or "[]"):
            row: dict[str, Any] = {}
            for tag, text in (record.get("tags") or {}).items():
                with contextlib.suppress(ValueError, TypeError):  # MLflow's own tags are plain texts
                    row[tag] = json.loads(text)
            for part in ("expectations", "inputs", "outputs"):
                row |= record.get(part) or {}
            rows.append(row)
        token = page.get("next_page_token") or None
    return identifier, rows


def _add_to_mlflow(client: HttpClient, name: str, identifier: str | None, rows: Sequence[_Parts]) -> str:
    """All else of a row becomes tags of the record; its key is an input, by which MLflow tells records apart."""
    if identifier is None:
        identifier = asked(client, "mlflow", "POST", f"{_MLFLOW}/create", json={"name": name})["dataset"]["dataset_id"]
    records = []
    for inputs, outputs, rest in rows:
        tags = {tag: json.dumps(value) for tag, value in rest.items() if value is not None and tag != KEY}
        records.append({"inputs": {**inputs, KEY: rest[KEY]}, "outputs": outputs, "tags": tags})
    asked(client, "mlflow", "POST", f"{_MLFLOW}/{identifier}/records", json={"records": json.dumps(records)})
    return str(identifier)


_TOOLS: Final[Mapping[str, tuple[Callable[..., Any], ...]]] = {
    "phoenix": (phoenix_server, _phoenix_rows, _add_to_phoenix),
    "mlflow": (tracking_server, _mlflow_rows, _add_to_mlflow),
}
"""Where the server is, what reads a data set, and what adds rows to it."""
