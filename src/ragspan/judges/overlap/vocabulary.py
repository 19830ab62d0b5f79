"""Word lists for English: what carries no content, what denies, and what is written in more than one way."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _pairs(text: str) -> dict[str, str]:
    return dict(pair.split("=") for pair in text.split())


STOP_WORDS = _words(
    """
    a able about above across after again all along also although am among an and another any are around as at be became
    because become been before being below between both but by can could despite did do does doing done down due during
    each eg either else etc even ever every for from further get gets give given gives go goes got had has have having
    he hence her here hers herself him himself his how however i ie if in include included includes including instead
    into is it its itself just let like likely made make makes many may me might more moreover most much must my myself
    of off often on once one only or other others otherwise ought our ours ourselves out over own per perhaps quite
    rather really same shall she should since so some such take takes than that the their theirs them themselves then
    there thereby therefore these they this those though through thus to together too toward towards under until unto
    up upon us use used uses using very via was we well were what whatever when where whereas whether which while who
    whoever whom whose why will with within would yes yet you your yours yourself yourselves
    """
)
"""Words too common to show where a sentence comes from."""

NEGATIONS = _words("no not never none neither nor nothing nowhere nobody without lack lacks lacking")
"""Words that deny. "Cannot" and contractions with "n't" have the key "not"."""

NUMBER_WORDS = _pairs(
    """
    two=2 three=3 four=4 five=5 six=6 seven=7 eight=8 nine=9 ten=10 eleven=11 twelve=12 thirteen=13 fourteen=14
    fifteen=15 sixteen=16 seventeen=17 eighteen=18 nineteen=19 twenty=20 thirty=30 forty=40 fifty=50 sixty=60
    seventy=70 eighty=80 ninety=90 hundred=100
    """
)
"""Number words as digits. "One" is left out: it is a pronoun more often than a count."""

CALENDAR = _pairs(
    """
    jan=january feb=february apr=april jun=june jul=july aug=august sep=september sept=september oct=october
    nov=november dec=december mon=monday tue=tuesday tues=tuesday wed=wednesday thu=thursday thur=thursday
    thurs=thursday fri=friday
    """
)
"""Months and days by their abbreviations. "Mar", "sat" and "sun" are words of their own and are left out."""

ABBREVIATIONS = _words(
    """
    al approx apr assn aug ave blvd ca capt cf ch co col corp dec dept dr eds eq est etc feb fig figs ft gen gov hon inc
    jan jr jul jun lt ltd mar mr mrs ms mt no nos nov oct pp pres prof rd rep rev sec sen sep sept sgt sr st univ vol vs
    """
)
"""Words whose full stop seldom ends a sentence."""

NEUTRAL_WORDS = _words(
    """
    accord addition aim answer appear argue aspect attempt author base call cause certain cite conclude consider
    contain context current data define describe detail differ discuss document emphasize especially example
    experience explain express fact factor focus format former general highlight impact important indicate inform
    involve issue key latter lead main mean mention method note number overall overview passage point potential process
    provide question refer regard relevant report result several significant situation source specific state suggest
    summary text unique various
    """
)
"""What people say about a text rather than with it; an answer may use these words though the passages do not."""
