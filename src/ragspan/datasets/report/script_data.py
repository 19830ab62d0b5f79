"""What scripts of a page need to be safe: data that cannot end its element, and the hashes that a policy names."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

_ESCAPES = {ord(mark): f"\\u{ord(mark):04x}" for mark in "<>&\u2028\u2029"}


def script_json(value: Any) -> str:
    """JSON text for a `<script type="application/json">`: ASCII, and without `<`, `>` and `&`.

    Raises:
        ValueError: the value holds NaN or an infinity, which JSON does not know.
    """
    return json.dumps(value, separators=(",", ":"), allow_nan=False).translate(_ESCAPES)


def content_policy(scripts: Iterable[str]) -> str:
    """A Content-Security-Policy under which a page asks for nothing, and runs these scripts and no others.

    Styles may stand in the page, for the widths of its bars; with no source allowed for pictures and fonts but the page
    itself, a style cannot call anyone.
    """
    hashes = " ".join(f"'sha256-{_digest(script)}'" for script in scripts)
    rules: Mapping[str, str] = {
        "default-src": "'none'",
        "script-src": hashes,
        "style-src": "'unsafe-inline'",
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{name} {sources}" for name, sources in rules.items())


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
