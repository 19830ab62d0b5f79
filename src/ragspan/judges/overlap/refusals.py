"""Answers that say that there is no answer.

In English by what such sentences have in common: they deny knowing, finding or being told, and they speak of the
contexts, of information, or of themselves. In some 20 other languages by stock phrases. Whether a refusal is good depends
on the contexts; here it is only seen.
"""

from __future__ import annotations

import re

from ragspan.judges.overlap.claims import is_courtesy
from ragspan.judges.overlap.languages import ENGLISH, Language, guess
from ragspan.judges.overlap.sentences import split_sentences
from ragspan.judges.overlap.text import readable

MAX_CHARACTERS = 4_000
"""Characters of a response that are looked at."""

_NOT = r"(?:\ not|n't)(?:\ (?:explicitly|specifically|directly|actually|clearly|currently))?"
_KIND = r"(?:\ (?:any|enough|sufficient|specific|explicit|relevant|direct|further|additional|such|that|the|clear)){0,3}"
_TELL = r"(?:answer|determine|tell|say|find|locate|confirm|provide|give)"
_HELD = r"(?:mentioned|provided|stated|specified|given|included|found|available|discussed|addressed|covered)"

# What is said of passages that do not hold the answer ...
_DENIES = re.compile(
    rf"""
    \b(?:do|does|did){_NOT}\ (?:contain|provide|mention|include|specify|state|say|cover|address|answer|discuss|give|offer|
                               indicate|explain|describe|list|have(?!\ to\b))\b
  | \bnot(?:\ (?:explicitly|specifically|directly|clearly))?\ {_HELD}\b
  | \b(?:cannot|can\ not|can't|could\ not|couldn't)\ be\ (?:found|determined|answered|inferred)\b
  | \b(?:unable|not\ able|not\ possible|impossible)\ to\ {_TELL}\b
  | \bno{_KIND}\ (?:information|mention|details?|data|answer|indication)\b
    """,
    re.IGNORECASE | re.VERBOSE,
)
# ... which is a refusal when the sentence speaks of them.
_NAMES = re.compile(
    r"""
    \b(?:passage|document|context|text|article|excerpt|snippet|source|search\ result|answer|question)s?\b
  | \b(?:the|this|that|provided|given|available)\ information\b | \binformation\ (?:provided|given|available)\b
    """,
    re.IGNORECASE | re.VERBOSE,
)
# What a speaker says who does not know. A company says "we cannot provide" and "we do not have" of its goods.
_DOES_NOT_KNOW = re.compile(
    rf"""
    \b(?:I\ (?:cannot|can\ not|can't|could\ not|couldn't|am\ (?:unable|not\ able)\ to)\ (?:{_TELL}|help)
       | I'm\ (?:unable|not\ able)\ to\ (?:{_TELL}|help)
       | (?:I|[Ww]e)\ (?:do|did){_NOT}\ (?:know | (?:have|find){_KIND}\ (?:information|knowledge|details?|data|answer))
       | I\ have\ no{_KIND}\ (?:information|knowledge|details?|data|answer|idea)
       | [Tt]here\ (?:is|was|are|were)\ (?:no|not\ (?:any|enough)){_KIND}\ (?:information|mention|details)
       | (?:do|does|did){_NOT}\ (?:contain|provide|include|have|give){_KIND}\ information\ (?:about|on|regarding)
       | [Nn]o{_KIND}\ information\ (?:about|on|regarding|(?:is|was|were|could\ be)\ (?:found|available|given|provided))
       | [Uu]nable\ to\ answer
    )\b
    """,
    re.VERBOSE,
)


_DENIALS = ("not", "n't", "no ", "unable", "impossible")
"""Part of whatever the English expressions match; to look for them first spares most responses the rest."""


def is_refusal(response: str) -> bool:
    """True when at least half of the sentences say that the answer is not known or not in the passages.

    A stock phrase may close an answer that is full otherwise; such an answer is no refusal. Never raises, and takes
    time for the first `MAX_CHARACTERS` only.
    """
    language = guess(response, enough=1) or ENGLISH
    text = readable(response[:MAX_CHARACTERS])
    if language.code == "en" and not _may_refuse(text):
        return False
    sentences = [line for line in split_sentences(text, language=language) if not is_courtesy(line)]
    refusing = sum(refuses(line, language) for line in sentences)
    return 2 * refusing >= max(1, len(sentences))


def refuses(line: str, language: Language = ENGLISH) -> bool:
    """True for a sentence that says that the answer is not known, or not in the contexts."""
    sentence = " ".join(line.split())
    if language.code != "en" and language.refusals.search(sentence.lower()):
        return True
    return _may_refuse(sentence) and bool(
        _DOES_NOT_KNOW.search(sentence) or (_NAMES.search(sentence) and _DENIES.search(sentence))
    )


def _may_refuse(text: str) -> bool:
    lowered = " ".join(text.lower().split())
    return any(denial in lowered for denial in _DENIALS)
