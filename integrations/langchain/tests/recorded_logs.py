"""Logs of real requests as JSON, so that tests can fold them without the framework.

`python integrations/langchain/tests/recorded_logs.py` records them anew.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

from ragspan.capturing.log import RequestLog, TokenStream
from ragspan.capturing.snapshots import CUT, LONG_TEXT, OPAQUE, Hidden, ObjectFields, Opaque
from ragspan.records import RetrievedContext, SpanAnchor
from ragspan.runs.payloads import MESSAGE, Call, Document, Message
from ragspan.step_texts import NotedError

FOLDER = Path(__file__).with_name("recorded_logs")
_CLASSES = {kind.__name__: kind for kind in (Call, Message, RetrievedContext, SpanAnchor)}
_MARKS = {"CUT": CUT, "LONG_TEXT": LONG_TEXT, "MESSAGE": MESSAGE, "OPAQUE": OPAQUE}
_ABOUT_LOG = ("grouped", "root", "started_ns", "ended_ns", "over", "abandoned", "anchor", "about", "events")


class LogFile:
    """One log in a file; a document that appears several times is the same one again when it is read."""

    def __init__(self, documents: list[Any] | None = None) -> None:
        self.documents: list[Any] = documents or []
        self._numbers: dict[int, int] = {}
        self._read: dict[int, Document] = {}

    def plain(self, value: Any) -> Any:
        if isinstance(value, Document):
            if id(value) not in self._numbers:
                self._numbers[id(value)] = len(self._numbers)
                self.documents.append([value.text, value.id, self.plain(value.metadata)])
            return {"$document": self._numbers[id(value)]}
        if isinstance(value, Opaque):
            mark = next((name for name, each in _MARKS.items() if each is value), None)
            inside = {"$hidden": self.plain(value.inside)} if isinstance(value, Hidden) else {"$opaque": value.identity}
            return inside if mark is None else {"$mark": mark}
        if isinstance(value, NotedError):
            return {"$error": value.kind.__name__, "message": value.message}
        if type(value).__name__ in _CLASSES:
            fields = {field.name: self.plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
            return {"$": type(value).__name__, **fields}
        if isinstance(value, dict):
            fields = {str(key): self.plain(item) for key, item in value.items()}
            return {"$object": fields} if isinstance(value, ObjectFields) else fields
        if isinstance(value, (list, tuple)):
            return [self.plain(item) for item in value]
        return value if value is None or isinstance(value, (str, int, float)) else None

    def value(self, plain: Any) -> Any:
        if isinstance(plain, list):
            return [self.value(item) for item in plain]
        if not isinstance(plain, dict):
            return plain
        match plain:
            case {"$document": number}:
                if number not in self._read:
                    self._read[number] = Document(*self.documents[number])
                return self._read[number]
            case {"$mark": name}:
                return _MARKS[name]
            case {"$hidden": inside}:
                return Hidden(self.value(inside))
            case {"$opaque": identity}:
                return Opaque(identity)
            case {"$object": fields}:
                return ObjectFields(self.value(fields))
            case {"$error": name, "message": message}:
                return NotedError(type(name, (Exception,), {}), message, ())
            case {"$": name, **fields}:
                return _CLASSES[name](**{key: self.value(item) for key, item in fields.items()})
        return {key: self.value(item) for key, item in plain.items()}


def save(name: str, log: RequestLog) -> None:
    file = LogFile()
    plain = {field: file.plain(getattr(log, field)) for field in _ABOUT_LOG}
    plain["streams"] = {str(key): [each.first_ns, file.plain(each.tokens)] for key, each in log.streams.items()}
    text = json.dumps({"documents": file.documents, **plain}, ensure_ascii=False, indent=1)
    (FOLDER / f"{name}.json").write_text(text + "\n")


def load(name: str) -> RequestLog:
    plain = json.loads((FOLDER / f"{name}.json").read_text())
    file, log = LogFile(plain.pop("documents")), RequestLog()
    for key, (first_ns, tokens) in plain.pop("streams").items():
        stream = log.streams[int(key)] = TokenStream()
        stream.first_ns, stream.tokens = first_ns, tokens
    for field, value in plain.items():
        setattr(log, field, file.value(value))
    return log
