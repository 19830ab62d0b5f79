"""Which sentences say that there is no answer.

In English they are known by what they have in common: they deny knowing, finding or being told, and they speak of the contexts,
of information, or of themselves. In some 20 other languages they are known by stock phrases.
"""

from __future__ import annotations

import re

from ragspan.text.languages import ENGLISH, Language

_NOT = r"(?:\ not|n't)(?:\ (?:explicitly|specifically|directly|actually|clearly|currently))?"
_KIND = r"(?:\ (?:any|enough|sufficient|specific|explicit|relevant|direct|further|additional|such|that|the|clear)){0,3}"
_TELL = r"(?:answer|determine|tell|say|find|locate|confirm|provide|give)"
_HELD = r"(?:mentioned|provided|stated|specified|given|included|found|available|discussed|addressed|covered)"

# What is said of contexts that do not hold the answer ...
_DENIES = re.compile(
    rf"""
    \b(?:do|does|did){_NOT}\ (?:contain|provide|mention|include|specify|state|say|cover|address|answer|discuss|give|offer|
                               indicate|explain|describe|list|have(?!\ to\b))\b
  | (?:\bnot|n't)(?:\ (?:explicitly|specifically|directly|clearly))?\ {_HELD}\b
  | \b(?:cannot|can\ not|can't|could\ not|couldn't)\ be\ (?:found|determined|answered|inferred)\b
  | \b(?:unable|not\ able|not\ possible|impossible)\ to\ {_TELL}\b
  | \bno{_KIND}\ (?:information|mention|details?|data|answer|indication)\b
    """,
    re.IGNORECASE | re.VERBOSE,
)
# ... is a refusal if the sentence speaks of them.
_NAMES = re.compile(
    r"""
    \b(?:passage|document|context|text|article|excerpt|snippet|source|search\ result|answer|question)s?\b
  | \b(?:the|this|that|provided|given|available)\ information\b | \binformation\ (?:provided|given|available)\b
    """,
    re.IGNORECASE | re.VERBOSE,
)
# What a speaker says who does not know. Of its goods a company says "we cannot provide" and "we do not have".
_DOES_NOT_KNOW = re.compile(
    rf"""
    \b(?:I\ (?:cannot|can\ not|can't|could\ not|couldn't|am\ (?:unable|not\ able)\ to)\ (?:{_TELL}|help)
       | I'm\ (?:unable|not\ able)\ to\ (?:{_TELL}|help)
       | (?:I|[Ww]e)\ (?:do|did){_NOT}\ (?:know | (?:have|find){_KIND}\ (?:information|knowledge|details?|data|answer))
       | I(?:'m|\ am)\ not\ (?:sure|certain)
       | (?:I|[Ww]e)\ (?:could\ not|couldn't|did\ not|didn't|cannot|can\ not|can't)\ find\ (?:anything|any)
       | I\ have\ no{_KIND}\ (?:information|knowledge|details?|data|answer|idea)
       | [Tt]here\ (?:is|was|are|were)\ (?:no|not\ (?:any|enough)){_KIND}\ (?:information|mention|details)
       | (?:do|does|did){_NOT}\ (?:contain|provide|include|have|give){_KIND}\ information\ (?:about|on|regarding)
       | [Nn]o{_KIND}\ information\ (?:about|on|regarding|(?:is|was|were|could\ be)\ (?:found|available|given|provided))
       | [Uu]nable\ to\ answer
    )\b
    """,
    re.VERBOSE,
)
_DENIES_AT_ALL = ("no ", "no\n", "not", "n't", "unable", "impossible")
"""What the English expressions match has one of these: most responses need no further look."""


def refuses(line: str, language: Language = ENGLISH) -> bool:
    """True for a sentence that says that the answer is not known, or not in the contexts."""
    may, is_english = may_refuse(line), language.code == "en"
    sentence = " ".join(line.split()) if may or not is_english else ""
    if not is_english and language.refusals.search(sentence.lower()):
        return True
    return may and bool(_DOES_NOT_KNOW.search(sentence) or (_NAMES.search(sentence) and _DENIES.search(sentence)))


def may_refuse(text: str) -> bool:
    """False where no sentence of an English text can be a refusal; quick."""
    return any(map(text.lower().__contains__, _DENIES_AT_ALL))
