"""Limits that a denial says, small sums of money, and names of which one part is wrong, in several languages."""

from __future__ import annotations

import pytest

from ragspan.judges import OverlapJudge
from ragspan.metrics import ContextAdherence
from ragspan.records import RagRecord

# Each row has ways to say the same, and one to say something else.
LIMITS = [
    ["Take at most 8 tablets a day.", "Do not take more than 8 tablets a day.", "Take at least 8 tablets a day."],
    ["A team has at least 5 members.", "A team has no fewer than 5 members.", "A team has no more than 5 members."],
    ["You can stay up to 90 days.", "The stay must not exceed 90 days.", "You have to stay at least 90 days."],
    [
        "Nehmen Sie höchstens 8 Tabletten am Tag.",
        "Nehmen Sie nicht mehr als 8 Tabletten am Tag.",
        "Nehmen Sie mindestens 8 Tabletten am Tag.",
    ],
    [
        "Ein Team hat mindestens 5 Mitglieder.",
        "Ein Team hat nicht weniger als 5 Mitglieder.",
        "Ein Team hat nicht mehr als 5 Mitglieder.",
    ],
    [
        "Prenez au plus 8 comprimés par jour.",
        "Ne prenez pas plus de 8 comprimés par jour.",
        "Prenez au moins 8 comprimés par jour.",
    ],
    ["Tome como máximo 8 pastillas al día.", "No tome más de 8 pastillas al día.", "Tome al menos 8 pastillas al día."],
    [
        "Prenda al massimo 8 compresse al giorno con un bicchiere di acqua.",
        "Non prenda più di 8 compresse al giorno con un bicchiere di acqua.",
        "Prenda almeno 8 compresse al giorno con un bicchiere di acqua.",
    ],
    [
        "Tome no máximo 8 comprimidos por dia.",
        "Não tome mais de 8 comprimidos por dia.",
        "Tome pelo menos 8 comprimidos por dia.",
    ],
    [
        "Neem hoogstens 8 tabletten per dag in met een glas water.",
        "Neem niet meer dan 8 tabletten per dag in met een glas water.",
        "Neem minstens 8 tabletten per dag in met een glas water.",
    ],
    [
        "Należy przyjmować najwyżej 8 tabletek dziennie.",
        "Nie należy przyjmować więcej niż 8 tabletek dziennie.",
        "Należy przyjmować co najmniej 8 tabletek dziennie.",
    ],
]
SUMS = [
    [
        "Der Kaffee aus dem Automaten kostet 99 Cent.",
        "Der Kaffee aus dem Automaten kostet 0,99 Euro.",
        "Der Kaffee aus dem Automaten kostet 99 Euro.",
    ],
    [
        "Das Brot bei dem Bäcker an der Ecke kostet 1,50 Euro.",
        "Das Brot bei dem Bäcker an der Ecke kostet 150 Cent.",
        "Das Brot bei dem Bäcker an der Ecke kostet 15 Cent.",
    ],
    ["Le café coûte 99 centimes.", "Le café coûte 0,99 euro.", "Le café coûte 99 euros."],
    ["El café cuesta 80 céntimos.", "El café cuesta 0,80 euros.", "El café cuesta 80 euros."],
    ["Il caffè costa 90 centesimi.", "Il caffè costa 0,90 euro.", "Il caffè costa 90 euro."],
    [
        "De koffie in het restaurant kost 95 cent.",
        "De koffie in het restaurant kost 0,95 euro.",
        "De koffie in het restaurant kost 95 euro.",
    ],
    ["Kawa kosztuje 99 groszy.", "Kawa kosztuje 0,99 zł.", "Kawa kosztuje 99 zł."],
    ["O café custa 75 cêntimos.", "O café custa 0,75 euros.", "O café custa 75 euros."],
]
NAMES = [
    [
        "José Müller in Málaga leitet die Filiale.",
        "Jose Mueller in Malaga leitet die Filiale.",
        "Josef Meier in Malaga leitet die Filiale.",
    ],
    [
        "Anna Schmidt ist seit 2020 die Leiterin der Abteilung.",
        "Die Leiterin der Abteilung ist seit 2020 Anna Schmidt.",
        "Anna Schneider ist seit 2020 die Leiterin der Abteilung.",
    ],
    [
        "Dr. Peter Vogel behandelt die Patienten am Montag und am Dienstag.",
        "Dr. Vogel behandelt die Patienten am Montag und am Dienstag.",
        "Dr. Peter Voss behandelt die Patienten am Montag und am Dienstag.",
    ],
    [
        "Marie Dupont dirige l'agence de Lyon depuis 2019.",
        "L'agence de Lyon, Marie Dupont la dirige depuis 2019.",
        "Marie Durand dirige l'agence de Lyon depuis 2019.",
    ],
]


DAYS = [
    [
        "Das Büro ist am Dienstag ab neun Uhr offen.",
        "Das Büro ist ab neun Uhr am Dienstag offen.",
        "Das Büro ist am Freitag ab neun Uhr offen.",
    ],
    [
        "Le marché du quartier a lieu le mardi matin.",
        "Le mardi matin a lieu le marché du quartier.",
        "Le marché du quartier a lieu le jeudi matin.",
    ],
    ["La piscina abre cada año en mayo.", "Cada año la piscina abre en mayo.", "La piscina abre cada año en julio."],
    [
        "Il mercato si tiene ogni sabato in piazza.",
        "Ogni sabato si tiene il mercato in piazza.",
        "Il mercato si tiene ogni lunedì in piazza.",
    ],
    [
        "A loja fecha todos os anos em agosto.",
        "Todos os anos a loja fecha em agosto.",
        "A loja fecha todos os anos em março.",
    ],
    [
        "Het grofvuil wordt op dinsdag opgehaald.",
        "Op dinsdag wordt het grofvuil opgehaald.",
        "Het grofvuil wordt op donderdag opgehaald.",
    ],
]


async def label(context, response):
    score = await ContextAdherence(OverlapJudge(), polls=1, causes=False).score(
        RagRecord(question="", contexts=[context], response=response)
    )
    return score.label


@pytest.mark.parametrize(("one", "other"), [(row[0], row[1]) for row in LIMITS + SUMS + NAMES + DAYS])
async def test_two_ways_to_say_the_same_pass(one, other):
    assert [await label(one, other), await label(other, one)] == ["pass", "pass"]


@pytest.mark.parametrize(
    ("context", "wrong"), [(right, row[-1]) for row in LIMITS + SUMS + NAMES + DAYS for right in row[:-1]]
)
async def test_another_limit_sum_name_or_day_fails(context, wrong):
    assert await label(context, wrong) == "fail"


async def test_a_denial_that_is_no_limit_still_counts():
    context = "Nehmen Sie die Tabletten nicht mit Milch ein."
    assert await label(context, "Nehmen Sie die Tabletten mit Milch ein.") == "fail"


async def test_a_capital_of_german_nouns_is_no_name():
    context = "Am Montag erhalten neue Mitglieder der Genossenschaft Post vom Vorstand."
    assert await label(context, "Neue Mitglieder der Genossenschaft erhalten am Montag Post vom Vorstand.") == "pass"
