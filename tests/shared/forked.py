"""Code that runs in the child of a fork."""

from __future__ import annotations

import gc
import json
import os
import select
import warnings

_PATIENCE = 60.0  # seconds; only a test that fails waits for so long


def in_child(call):
    """Run a function in a forked child and return its result, which JSON must be able to hold."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # forking with threads is what is tested
        child = os.fork()
    if not child:
        status = 1
        gc.disable()  # what other tests have left may wait for threads that only the parent has: gRPC does
        try:
            os.write(writer, json.dumps(call()).encode())
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    with os.fdopen(reader, "rb") as answer:
        assert select.select([reader], [], [], _PATIENCE)[0], "the child does not answer"
        text = answer.read()
    assert os.waitpid(child, 0)[1] == 0, "the child failed"
    return json.loads(text)
