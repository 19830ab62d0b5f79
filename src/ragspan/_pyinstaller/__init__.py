"""Tells PyInstaller, by the entry point `pyinstaller40`, where the hook is that puts ragspan's files of words into an application."""

from __future__ import annotations

from pathlib import Path


def hook_dirs() -> list[str]:
    """The folder of `hook-ragspan.py`."""
    return [str(Path(__file__).parent)]
