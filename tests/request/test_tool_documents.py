"""What the result of a tool holds that the user named as a search, in the forms that search services answer in."""

from __future__ import annotations

import json
from typing import Any

import pytest
from written_logs import FILTER, HOSE, PUMP

from ragspan.request.contents import Document, PayloadMessage
from ragspan.request.documents import documents_of_result

BOTH = [(PUMP, None), (FILTER, None)]
RESULTS: dict[str, tuple[Any, list[tuple[str, str | None]]]] = {
    "a text": (PUMP, [(PUMP, None)]),
    "documents": ([Document(PUMP, "1", {}), Document(FILTER, "2", {})], [(PUMP, "1"), (FILTER, "2")]),
    "documents in lists": (
        [[Document(PUMP, "1", {})], {"more": [Document(FILTER, "2", {})]}, "a text", PayloadMessage("ai", "Yes.")],
        [(PUMP, "1"), (FILTER, "2")],
    ),
    "a message's blocks": (
        PayloadMessage("tool", [{"type": "text", "text": PUMP}, {"type": "text", "text": FILTER}]),
        BOTH,
    ),
    "a list of hits": ({"results": [{"content": PUMP, "url": "a"}, {"content": FILTER, "url": "b"}]}, BOTH),
    "texts in the metadata of matches": (
        {"result": {"matches": [{"id": "1", "metadata": {"text": PUMP}}, {"id": "2", "metadata": {"text": FILTER}}]}},
        [(PUMP, "1"), (FILTER, "2")],
    ),
    "columns": ({"ids": [["1", "2"]], "documents": [[PUMP, FILTER]], "metadatas": [[{"page": 1}, {"page": 2}]]}, BOTH),
    "hits below hits": (
        {
            "took": 3,
            "hits": {"total": {"value": 2}, "hits": [{"_source": {"text": PUMP}}, {"_source": {"text": FILTER}}]},
        },
        BOTH,
    ),
    "one below another": ({"result": {"text": HOSE}}, [(HOSE, None)]),
    "rows of a table": ({"rows": [{"part": "pump"}]}, [('{"rows": [{"part": "pump"}]}', None)]),
    "facets beside hits": ({"results": [PUMP, FILTER], "facets": [{"name": "part", "count": 2}]}, BOTH),
    "fields": ({"part": "pump", "euros": 40}, [('{"part": "pump", "euros": 40}', None)]),
    "nothing": ({"results": []}, []),
}


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize(("result", "documents"), RESULTS.values(), ids=RESULTS)
def test_documents_in_the_result_of_a_tool(result, documents, as_json):
    is_data = isinstance(result, (dict, list)) and "Document(" not in repr(result)
    given = json.dumps(result) if as_json and is_data else result

    assert [(document.text, document.id) for document, _ in documents_of_result(given)] == documents
