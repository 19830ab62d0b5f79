"""What a sink or a server of an integration's own is made of: the queue with its worker, deadlines, and calls that raise nothing.

A sink derives from `BackgroundProcessor` and makes a `Work`, which gets an `Item` for each capture. Integrations import these
names from here.
"""

from ragspan.engine.processor import BackgroundProcessor, ProcessorOptions
from ragspan.engine.record_queue import Item
from ragspan.engine.record_redaction import Redaction
from ragspan.engine.sampling import draw
from ragspan.engine.threads import DaemonThreads, Deadline, call_guarded
from ragspan.engine.worker import Work

__all__ = [
    "BackgroundProcessor",
    "DaemonThreads",
    "Deadline",
    "Item",
    "ProcessorOptions",
    "Redaction",
    "Work",
    "call_guarded",
    "draw",
]
