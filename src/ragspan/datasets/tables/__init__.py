"""Where rows come from: files of three formats, data frames, and anything that can be iterated."""

from __future__ import annotations

from ragspan.datasets.tables.base import Table, TableRow
from ragspan.datasets.tables.files import STANDARD_INPUT, FileFormat, open_file
from ragspan.datasets.tables.frames import table_of

__all__ = ["STANDARD_INPUT", "FileFormat", "Table", "TableRow", "open_file", "table_of"]
