"""What the sentences of a response do: claim something, be polite, or say that there is no answer.

A refusal says that there is no answer. In English it is known by what such sentences have in common: they deny knowing,
finding or being told, and they speak of the contexts, of information, or of themselves. In some 20 other languages it is
known by stock phrases. Whether a refusal is good depends on the contexts.
"""

from __future__ import annotations

import re
from itertools import islice

from ragspan.text.keys import is_content, readable
from ragspan.text.languages import ENGLISH, Language, characters_read, guess
from ragspan.text.sentences import Sentence, read_sentence, split_sentences
from ragspan.text.vocabulary import word_set

MAX_CHARACTERS = 30_000
"""Characters of a response that are read."""
MAX_CLAIMS = 400
"""Sentences of a response that are scored, the first ones."""
MAX_REFUSAL = 4_000
"""Characters of a response that are searched for a refusal."""

_INTERJECTION = (
    r"(?:sure|certainly|of\ course|absolutely|hello|hi|hey|thanks|thank\ you|(?:great|good)\ question|"
    r"you(?:'|\ a)re\ welcome|no\ problem)(?:\ (?:there|thing|for\ asking))?"
)
_COURTESY = re.compile(
    rf"""
    \W{{0,9}}(?:{_INTERJECTION}\b[\s,.!:-]{{0,5}}){{0,3}}
    (?: $
      | (?:i(?:\ would|'d)\ be|i(?:\ a|')m)?\s?(?:happy|glad|here)\ to\ (?:help|assist)\b
      | (?:i\ )?hope\ (?:this|that|it)\ (?:help|answer|clarif)
      | (?:please\ )?(?:let\ me\ know|feel\ free|do\ not\ hesitate|don't\ hesitate)\b
      | (?:is\ there\ anything\ else|how\ (?:can|may)\ i\ (?:help|assist))\b
      | here(?:'s|\ is|\ are)\b[^\n]*:\W{{0,9}}$
    )
    """,
    re.IGNORECASE | re.VERBOSE,
)


_OPENING = re.compile(r"\W{0,9}(\w{1,12})")
_OPENINGS = word_set(
    "sure certainly of absolutely hello hi hey thanks thank great good you no i happy glad here hope please let feel do don is how"
)
"""The words that a courtesy begins with: most sentences need no look at the long expression."""


def read_claims(response: str, language: Language = ENGLISH) -> tuple[Sentence, ...]:
    """The sentences with content, without list markers, greetings, courtesies and "Here is ...:"."""
    lines = split_sentences(readable(response[: characters_read([response], MAX_CHARACTERS)[0]]), language=language)
    sentences = (read_sentence(line, language) for line in lines)
    return tuple(islice(filter(_claims_something, sentences), MAX_CLAIMS))


def _claims_something(sentence: Sentence) -> bool:
    return any(map(is_content, sentence.keys)) and not is_courtesy(sentence.text)


def is_courtesy(sentence: str) -> bool:
    """True for a sentence that is only polite, or announces the answer."""
    opening = _OPENING.match(sentence)
    if opening is not None and opening[1].isascii() and opening[1].lower() not in _OPENINGS:
        return False
    return _COURTESY.match(sentence) is not None


_NOT = r"(?:\ not|n't)(?:\ (?:explicitly|specifically|directly|actually|clearly|currently))?"
_KIND = r"(?:\ (?:any|enough|sufficient|specific|explicit|relevant|direct|further|additional|such|that|the|clear)){0,3}"
_TELL = r"(?:answer|determine|tell|say|find|locate|confirm|provide|give)"
_HELD = r"(?:mentioned|provided|stated|specified|given|included|found|available|discussed|addressed|covered)"

# What is said of contexts that do not hold the answer ...
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
"""One of them is in whatever the English expressions match: most responses need no further look."""


def is_refusal(response: str) -> bool:
    """True when at least half of the sentences say that the answer is not known or not in the contexts.

    So a full answer that a stock phrase closes is no refusal. Never raises, and reads the first `MAX_REFUSAL` characters.
    """
    language = guess(response, enough=1) or ENGLISH
    text = readable(response[:MAX_REFUSAL])
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
