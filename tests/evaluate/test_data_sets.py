"""Data sets of tools, which a server here pretends to have."""

from __future__ import annotations

import json

import pytest
from servers.http import LocalHttp

from ragspan.evaluate.sources import add_rows, data_set_of, stored_rows
from ragspan.exceptions import TableError

ROWS = [
    {"key": f"k{at}", "question": "q", "contexts": ["c"], "response": f"r{at}", "label": None if at else "fail"}
    for at in range(102)
]


ASKED = {"question": "q", "contexts": ["c"]}
SENT = {
    "phoenix": (
        ["upload create", "upload append", "upload append"],
        {"input": ASKED, "output": {"response": "r0"}, "metadata": {"key": "k0", "label": "fail"}},
    ),
    "mlflow": (
        ["create", "records", "records", "records"],
        {"inputs": ASKED | {"key": "k0"}, "outputs": {"response": "r0"}, "tags": {"label": '"fail"'}},
    ),
}


class Tool:
    """Keeps what it is sent, as Phoenix and MLflow do, a page of sixty at a time; and the addresses that it was asked at."""

    def __init__(self):
        self.kept, self.asked, self.names = [], [], set()

    def reply(self, request):
        action = request.content.get("action", "") if request.content else ""
        self.asked.append(f"{request.method} {request.path} {action}".strip())
        return 200, {"Content-Type": "application/json"}, json.dumps(self.answer(request)).encode()

    def answer(self, request):
        match request.method, request.path.rsplit("/", 1)[1]:
            case "GET", "datasets":
                return {"data": [{"id": 7}] if request.query["name"][0] in self.names else []}
            case "GET", "examples":
                return {"data": {"examples": self.kept}}
            case "POST", "upload":
                self.names.add(request.content["name"])
                sent = zip(
                    request.content["inputs"], request.content["outputs"], request.content["metadata"], strict=True
                )
                self.kept += [dict(zip(("input", "output", "metadata"), one, strict=True)) for one in sent]
                return {}
            case "POST", "search":
                return {
                    "datasets": [
                        {"name": "else", "dataset_id": 1},
                        *({"name": name, "dataset_id": 7} for name in self.names),
                    ]
                }
            case "POST", "create":
                self.names.add(request.content["name"])
                return {"dataset": {"dataset_id": 7}}
            case "POST", "records":
                self.kept += json.loads(request.content["records"])
                return {}
        first = int(request.query.get("page_token", ["0"])[0])
        page = [one | {"tags": one["tags"] | {"mlflow.user": "ada"}} for one in self.kept[first : first + 60]]
        return {"records": json.dumps(page), "next_page_token": str(first + 60) if first + 60 < len(self.kept) else ""}


@pytest.fixture
def tool(monkeypatch):
    made = Tool()
    monkeypatch.setenv("NO_PROXY", "*")
    with LocalHttp(made.reply) as server:
        monkeypatch.setenv("PHOENIX_COLLECTOR_ENDPOINT", server.url)
        monkeypatch.setenv("MLFLOW_TRACKING_URI", server.url)
        yield made


@pytest.mark.parametrize("name", ["phoenix", "mlflow"])
def test_rows_are_added_once_and_come_back(tool, name):
    assert (add_rows(name, "failures", ROWS[:1]), add_rows(name, "failures", ROWS)) == (1, 101)
    assert add_rows(name, "failures", ROWS) == 0

    found = list(stored_rows(name, "failures"))
    assert [(row["key"], row["question"], row["contexts"], row["response"]) for row in found] == [
        (row["key"], row["question"], row["contexts"], row["response"]) for row in ROWS
    ]
    assert [row.get("label") for row in found] == [row["label"] for row in ROWS]
    writes = [one.rpartition("/")[2] for one in tool.asked if one.startswith("POST") and not one.endswith("search")]
    assert (writes, tool.kept[0]) == SENT[name], "a hundred rows at once"


@pytest.mark.parametrize("name", ["phoenix", "mlflow"])
def test_a_data_set_that_is_not_there_is_said(tool, name):
    with pytest.raises(TableError, match=f"{name} has no data set 'nowhere'"):
        list(stored_rows(name, "nowhere"))


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("phoenix:a b", ("phoenix", "a b")),
        ("mlflow:a:b", ("mlflow", "a:b")),
        ("phoenix://a", None),
        ("other:a", None),
        ("phoenix:", None),
    ],
)
def test_a_name_of_a_data_set(name, found):
    assert data_set_of(name) == found
