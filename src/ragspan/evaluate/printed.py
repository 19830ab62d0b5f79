"""Lists as programs print them: Python, NumPy and pandas, which data frames write into CSV files.

NumPy leaves out commas, breaks lines, and writes `...` for what it leaves out. So a list is read token by token, not as an
expression of Python, which would make one long text of two that have no comma between them.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
import warnings
from collections.abc import Iterator
from typing import Any, Final

_QUOTE: Final = r"""(?:[rbuRBU]{1,2})?['"]"""
_BETWEEN: Final = re.compile(
    rf"""['"]\s*,?\s*(?:{_QUOTE}|\w+\()|['"]\s*,\s*(?:nan|None|null|<NA>)\b|\nCategories \(\d+, \w+\): \["""
)
"""Where one text of a list ends and the next element begins, or what pandas writes below it."""
_BEGINNING: Final = re.compile(rf"[\[({{]\s*{_QUOTE}|\[\s*[A-Za-z_][\w.]*\(")
_CLOSED: Final = re.compile(r"""(?:['")\]]|nan|None|null|NA>)\s*,?\s*\]\Z""")
_OTHERWISE: Final = re.compile(
    r"(?:\w+\.)*(?:array|Index|Series|Categorical)\(\s*[\[\w]"  # of NumPy and pandas
    r"|(?:deque|frozenset|set|dict_values|dict_keys)\(\s*[\[{(]"
    r"|\[?<[\w. ]+ at 0x[0-9a-fA-F]+>"  # an object that shows nothing of itself
    r"|<\w*Array\w*>\s*\["  # of pandas
    r"|shape: \(\d[^)]*\)\s*\n\s*Series:"  # of polars
    r"|page_content=['\"]"  # a document of LangChain
    r"|(?:Document|TextNode|NodeWithScore)\(\w+="
)
_SERIES_END: Final = re.compile(r"\n(?:Name: .*, )?(?:Length: \d+, )?dtype: \w+\Z")
"""The last line of what pandas prints of a series."""
_END: Final = 200  # characters in which it is
_MISSING: Final = frozenset({"nan", "NaN", "None", "null", "NA", "NaT", "nat", "NAN", "Null", "NULL"})
_WORDS: Final = {"True": True, "False": False, "true": True, "false": False} | dict.fromkeys(_MISSING)
_CLOSING: Final = {"[": "]", "(": ")", "{": "}"}
_LEFT_OUT: Final = frozenset({tokenize.NL, tokenize.NEWLINE, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT})
_WRAPPERS: Final = frozenset(
    {"array", "Index", "deque", "frozenset", "set", "list", "tuple", "dict_values", "dict_keys", "str_", "float64"}
)
"""What stands around a value and is not a part of it; by the last part of its name."""


class UnreadablePrint(ValueError):  # noqa: N818 - what it is
    """A text is what a program prints of a list, and cannot be read back; the message says why, and quotes nothing."""


def printed(text: str) -> list[Any] | dict[str, Any] | None:
    """The list, or the single object, that a program has printed; None if the text looks like neither.

    Elements are texts, numbers, None, lists, and dictionaries: an object such as `Document(page_content='...')` is a
    dictionary of what is named in it.

    Raises:
        UnreadablePrint: it is a printed list, but something was left out of it, or it is printed in a way that is not known.
    """
    text = text.strip()
    is_series = _SERIES_END.search(text[-_END:]) is not None
    if not (is_series or text.startswith(tuple(_CLOSING)) or _OTHERWISE.match(text)):
        return None
    trouble = UnreadablePrint("look like a list as a program prints it, which cannot be read: write JSON")
    try:
        value = _Reader(text).whole()
    except UnreadablePrint as cut:
        trouble = cut
    except (ValueError, SyntaxError, tokenize.TokenError, RecursionError, MemoryError):
        pass
    else:
        return value if isinstance(value, (list, dict)) else None
    if is_series or _is_printed(text):
        raise trouble
    return None


def _is_printed(text: str) -> bool:
    """Whether a text that cannot be read was a list before it was printed, and is not text between brackets."""
    if _OTHERWISE.match(text):
        return True
    begins = _BEGINNING.match(text)
    is_list = text[0] == "[" and (_CLOSED.search(text[-_END:]) or "]" not in text)
    return bool(begins and (is_list or _BETWEEN.search(text)))


class _Reader:
    """Reads one value from a text's tokens."""

    def __init__(self, text: str) -> None:
        header = re.match(r"<\w+>\s*(?=\[)", text)  # of an array of pandas, which has its length and type below
        if header:
            text = text[header.end() : text.rindex("]") + 1]
        self._tokens = _tokens(text)
        self._next = next(self._tokens)

    def whole(self) -> object:
        value = self._value()
        if self._next.type != tokenize.ENDMARKER:
            raise ValueError("there is more behind the value")
        return value

    def _take(self) -> tokenize.TokenInfo:
        taken = self._next
        self._next = next(self._tokens, taken)
        return taken

    def _skip(self, text: str) -> bool:
        """Whether the next token was this one; then it is behind us."""
        is_next = self._next.string == text and self._next.type == tokenize.OP
        if is_next:
            self._take()
        return is_next

    def _value(self) -> object:
        token = self._take()
        if token.type in {tokenize.STRING, tokenize.NUMBER}:
            return _literal(token.string)
        if token.type == tokenize.NAME:
            return self._named(token.string)
        if token.string == "{":
            return self._braces()
        if token.string in _CLOSING:
            return self._elements(token.string)
        if token.string == "-":
            number = self._value()
            return -number if isinstance(number, (int, float)) else None
        if token.string == "<" and self._next.string in _MISSING:  # pandas' <NA>
            self._take()
            if self._skip(">"):
                return None
        if token.string == "...":
            raise UnreadablePrint("hold a list that was cut when it was printed (...): write the whole list as JSON")
        raise ValueError("no value begins here")

    def _elements(self, opening: str) -> object:
        elements: list[object] = []
        commas = 0
        while not self._skip(_CLOSING[opening]):
            elements.append(self._value())
            commas += self._skip(",")
        # One value in parentheses is that value.
        return elements[0] if opening == "(" and len(elements) == 1 and not commas else elements

    def _braces(self) -> object:
        """A dictionary, or a set as a list."""
        pairs: list[tuple[object, object]] = []
        elements: list[object] = []
        while not self._skip("}"):
            element = self._value()
            if self._skip(":"):
                pairs.append((element, self._value()))
            else:
                elements.append(element)
            self._skip(",")
        if pairs and elements:
            raise ValueError("neither a dictionary nor a set")
        return elements or {str(key): value for key, value in pairs}

    def _named(self, name: str) -> object:
        """A word, or what is called with values: `array([...], dtype=object)`, `Document(page_content='...')`."""
        while self._skip("."):
            name = self._take().string
        if not self._skip("("):
            if name in _WORDS:
                return _WORDS[name]
            raise ValueError("a word without quotes")
        places: list[object] = []
        named: dict[str, object] = {}
        while not self._skip(")"):
            if self._next.type == tokenize.NAME and self._is_keyword():
                key = self._take().string
                self._skip("=")
                if key == "dtype":
                    self._skip_type()
                else:
                    named[key] = self._value()
            else:
                places.append(self._value())
            self._skip(",")
        if name in _WRAPPERS and len(places) <= 1:
            return places[0] if places else []
        if places:
            raise ValueError("an object whose parts have no names")
        return named

    def _is_keyword(self) -> bool:
        _, end = self._next.end
        return self._next.line[end:].lstrip()[:1] == "="

    def _skip_type(self) -> None:
        """Skip what an array says of its type: `object`, `'<U24'`, `np.dtype(...)`."""
        while self._next.string not in {",", ")", ""}:
            self._take()


def _tokens(text: str) -> Iterator[tokenize.TokenInfo]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _LEFT_OUT:
            yield token


def _literal(text: str) -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a backslash that Python does not know
        value: object = ast.literal_eval(text)
    return value
