"""What `make check` refuses in code and pages: "is no", leaning first lines, long functions and files."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = sorted([*ROOT.glob("src/**/*.py"), *ROOT.glob("integrations/*/src/**/*.py")])
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("integrations/*/README.md")])
IS_NO = re.compile(
    r"\b(?:is|are|was|were) no\b(?! (?:longer|more|less|fewer|larger|smaller|later|earlier|sooner|use|better|worse)\b)",
    re.IGNORECASE,
)
THERE = re.compile(r"\bthere (?:is|are|was|were) no\b", re.IGNORECASE)
PRIVATE = re.compile(r"\b(?:as above|nobody)\b", re.IGNORECASE)
LEANING = re.compile(r"(?:Likewise|As above|As the next|And so on|Ditto)\b")
MOST_LINES = 60
MOST_LINES_OF_A_FILE = 400
LONGER = {
    "src/ragspan/safe_copy.py": 531,
}
"""Files that hold more, with what they may hold: these numbers only become smaller."""
QUOTED = {"parts.py"}  # prompts


def wrong_words(file: Path) -> Iterator[str]:
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        if file.name not in QUOTED and IS_NO.search(THERE.sub("", line)):
            yield f"{file.relative_to(ROOT)}:{number}: 'is no' is 'is not a': {line.strip()}"


def private_messages(file: Path) -> Iterator[str]:
    """What a user is told: it says the thing itself, in usual words."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        is_message = isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings
        if is_message and file.name not in QUOTED and (found := PRIVATE.search(node.value)):
            yield f"{file.relative_to(ROOT)}:{node.lineno}: {found[0]!r} in a message: {node.value.strip()[:80]}"


def leaning_docstrings(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            continue
        text = node.value.value
        if isinstance(text, str) and LEANING.match(text):
            yield f"{file.relative_to(ROOT)}:{node.lineno}: it leans on the line above: {text.splitlines()[0]}"


def long_files_and_functions(file: Path) -> Iterator[str]:
    text = file.read_text(encoding="utf-8")
    most = LONGER.get(file.relative_to(ROOT).as_posix(), MOST_LINES_OF_A_FILE)
    if text.count("\n") > most:
        yield f"{file.relative_to(ROOT)}: it has {text.count(chr(10))} lines, and {most} are enough"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            own = node.body[1:] if ast.get_docstring(node) is not None else node.body  # a command's options stand above
            lines = (node.end_lineno or 0) - own[0].lineno + 1 if own else 0
            if lines > MOST_LINES:
                yield f"{file.relative_to(ROOT)}:{node.lineno}: {node.name} has {lines} lines, and a screen {MOST_LINES}"


def main() -> None:
    found = [each for file in [*SOURCES, *PAGES] for each in wrong_words(file)]
    found += [each for file in SOURCES for each in leaning_docstrings(file)]
    found += [each for file in SOURCES for each in private_messages(file)]
    found += [each for file in SOURCES for each in long_files_and_functions(file)]
    print("\n".join([*found, f"wording: {len(found)} to mend"]))
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
