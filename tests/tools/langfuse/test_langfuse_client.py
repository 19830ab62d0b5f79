"""Langfuse's own client beside the writer, where it is installed; `conftest` has the same shapes written down."""

from __future__ import annotations

import pytest
from writer_law import PATIENCE

from ragspan.outcomes import Score

langfuse = pytest.importorskip("langfuse", reason="runs in `make test-clients`")
pytestmark = pytest.mark.slow

TRACE, SPAN = f"{0xA1:032x}", f"{0xB2:016x}"


@pytest.fixture
def client(server):
    made = langfuse.Langfuse(base_url=server.url, public_key="pk-lf-1", secret_key="sk-lf-secret", tracing_enabled=True)
    yield made
    made.shutdown()


def test_the_clients_score_is_ours_but_for_what_it_leaves_out(server, client, deliver, make_scored):
    deliver(make_scored({"faithfulness": Score(value=0.25, threshold=0.5, explanation="made up")}), explanations=True)
    (ours,) = server.stored.values()
    server.stored.clear()

    client.create_score(
        name="faithfulness",
        value=0.25,
        trace_id=TRACE,
        observation_id=SPAN,
        score_id=ours["id"],
        data_type="NUMERIC",
        comment="made up",
        metadata=ours["metadata"],
    )
    client.flush()

    (theirs,) = server.stored.values()
    assert {name: value for name, value in theirs.items() if name not in {"timestamp", "environment"}} == {
        name: value for name, value in ours.items() if name != "timestamp"
    }


def test_the_clients_type_of_a_score_takes_ours_and_knows_all_its_fields(server, make_writer, make_scored):
    from langfuse.api.core.serialization import convert_and_respect_annotation_metadata as by_fields
    from langfuse.api.scores.types import CreateScoreRequest

    writer = make_writer()
    writer.emit(make_scored({"faithfulness": Score(value=0.25)}))
    assert writer.flush(PATIENCE)

    for score in server.stored.values():
        request = CreateScoreRequest(**by_fields(object_=score, annotation=CreateScoreRequest, direction="read"))
        assert request.model_extra == {}
        assert (request.trace_id, request.observation_id) == (TRACE, SPAN)
