"""Runs the Python blocks of a page in order, in this process: python run_page.py PAGE PRELUDE.

A page begins with what `reader_program` has. Its prelude, `pages/<page>.py`, has what it needs besides. It may define
`after_block()`, which is called after each block, and `at_end()`.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from doc_pages import blocks_of
from reader_program import names_for

ADDRESSES = json.loads(os.environ["DOC_ADDRESSES"])


def main(page, prelude):
    blocks = [block for block in blocks_of(page) if block.language == "python" and not (block.not_run or block.file)]
    names = {"__name__": "__main__", "__file__": str(page)} | names_for("".join(block.text for block in blocks))
    if prelude.exists():
        run(prelude.read_text(encoding="utf-8"), prelude, names)
    for block in blocks:
        text = block.text
        for address, listener in ADDRESSES.items():
            text = text.replace(address, listener)
        run("\n" * (block.line - 1) + text, page, names)
        names.get("after_block", lambda: None)()
    names.get("at_end", lambda: None)()


def run(text, file, names):
    exec(compile(text, file, "exec"), names)  # line numbers are the page's


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
