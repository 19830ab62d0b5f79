"""Handlers that travel to other processes with what holds them."""

from __future__ import annotations

import pickle

from li_programs import QUESTION, engine


def test_a_copy_in_the_same_process_adds_no_record(captured):
    copy = pickle.loads(pickle.dumps(captured.handler))
    engine().query(QUESTION)

    assert len(captured.records()) == 1
    assert copy.open_spans == 0
    copy.detach()
