"""The registry of what a fork concerns."""

from __future__ import annotations

import os

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")

PROGRAM = """
import gc, os
gc.disable()
os.register_at_fork(after_in_child=gc.enable)  # before ragspan's own: the first collection comes while owners are told
from ragspan.forks import watch_forks

class Owner:
    def __init__(self):
        self.pid = os.getpid()
        self.itself = self  # so that only a collection lets go of it

    def note_child(self):
        self.pid = os.getpid()

for _ in range(1000):
    watch_forks(Owner(), Owner.note_child)
kept = Owner()
watch_forks(kept, Owner.note_child)
gc.set_threshold(gc.get_count()[0] + 300)
child = os.fork()
if not child:
    os._exit(0 if kept.pid == os.getpid() else 1)
print(os.waitpid(child, 0)[1])
"""


def test_every_owner_is_told_though_a_collection_takes_others_away_meanwhile(run_script):
    assert run_script(PROGRAM).stdout.strip() == "0"
