"""Another number, another name, or a denial on one side only, in languages other than English."""

from __future__ import annotations

import pytest

from ragspan.judges.overlap import OverlapJudge
from ragspan.metrics import ContextAdherence, Faithfulness
from ragspan.records import RagRecord

PAIRS = [
    (
        "Die Prüfung dauert 2,5 Stunden und kostet 80 Euro.",
        "Die Prüfung dauert zweieinhalb Stunden.",
        "Die Prüfung dauert dreieinhalb Stunden.",
    ),
    (
        "Het examen van de leden duurt 1,5 uur en kost 80 euro.",
        "Het examen van de leden duurt anderhalf uur.",
        "Het examen van de leden duurt tweeënhalf uur.",
    ),
    ("Das Museum schließt um 18.30 Uhr.", "Das Museum schließt um 18:30 Uhr.", "Das Museum schließt um 18:45 Uhr."),
    ("Das Museum schließt um 18:30 Uhr.", "Das Museum schließt um 18.30 Uhr.", "Das Museum schließt um 19.30 Uhr."),
    (
        "La bibliothèque ferme à 18:30 tous les jours.",
        "La bibliothèque ferme à 18 h 30.",
        "La bibliothèque ferme à 19 h 30.",
    ),
    (
        "De bibliotheek sluit om 18:30 en is op zondag niet open.",
        "De bibliotheek sluit om 18.30 uur en is op zondag niet open.",
        "De bibliotheek sluit om 19.30 uur en is op zondag niet open.",
    ),
    (
        "La biblioteca chiude alle 18:30 nei giorni feriali.",
        "La biblioteca chiude alle ore 18.30 nei giorni feriali.",
        "La biblioteca chiude alle ore 19.30 nei giorni feriali.",
    ),
    (
        "Biblioteka jest otwarta do 18:30 w dni robocze.",
        "Biblioteka jest otwarta do godz. 18.30 w dni robocze.",
        "Biblioteka jest otwarta do godz. 19.30 w dni robocze.",
    ),
    (
        "Biblioteket lukker klokken 18:30 på hverdage og er ikke åbent om søndagen.",
        "Biblioteket lukker kl. 18.30 på hverdage og er ikke åbent om søndagen.",
        "Biblioteket lukker kl. 19.30 på hverdage og er ikke åbent om søndagen.",
    ),
    (
        "Le pont a été dessiné par Hélène Lefèvre à Besançon.",
        "Le pont a été dessiné par Helene Lefevre à Besancon.",
        "Le pont a été dessiné par Hélène Dupont à Besançon.",
    ),
    (
        "A ponte foi desenhada por João Gonçalves em Évora.",
        "A ponte foi desenhada por Joao Gonçalves em Evora.",
        "A ponte foi desenhada por Pedro Gonçalves em Évora.",
    ),
    (
        "Most zaprojektował Łukasz Wiśniewski w Łodzi.",
        "Most zaprojektował Lukasz Wisniewski w Lodzi.",
        "Most zaprojektował Tomasz Wiśniewski w Łodzi.",
    ),
    (
        "Rückgaben sind innerhalb von 30 Tagen nach dem Kauf möglich.",
        "Rückgaben sind innerhalb von 30 Tagen möglich.",
        "Rückgaben sind innerhalb von 90 Tagen möglich.",
    ),
    (
        "Das Medikament darf nicht zusammen mit Alkohol eingenommen werden.",
        "Es darf nicht mit Alkohol eingenommen werden.",
        "Es darf mit Alkohol eingenommen werden.",
    ),
    (
        "Les salariés ont droit à vingt-cinq jours de congés payés par an.",
        "Les salariés ont droit à vingt-cinq jours de congés payés.",
        "Les salariés ont droit à trente-cinq jours de congés payés.",
    ),
    (
        "No se permite la entrada de perros en el museo.",
        "No se permite la entrada de perros.",
        "Se permite la entrada de perros.",
    ),
    (
        "Магазин открыт с девяти до двадцати часов.",
        "Магазин открыт до 20 часов.",
        "Магазин открыт до 18 часов.",
    ),
    ("La tour a été conçue par Claire Dumont.", "Claire Dumont a conçu la tour.", "Hugo Lambert a conçu la tour."),
    ("El curso empieza el 15 de septiembre.", "Empieza el 15 de septiembre.", "Empieza el 16 de septiembre."),
    (
        "Eine Teilnahme ohne Anmeldung ist nicht möglich.",
        "Ohne Anmeldung ist eine Teilnahme nicht möglich.",
        "Ohne Anmeldung ist eine Teilnahme möglich.",
    ),
    ("商品在购买后三十天内可以退货。", "购买后30天内可以退货。", "购买后90天内可以退货。"),
    ("商品在打开包装后不可以退货。", "打开包装后不可以退货。", "打开包装后可以退货。"),
    ("이 약은 하루에 3번 복용합니다.", "약은 하루에 3번 복용합니다.", "약은 하루에 5번 복용합니다."),
    ("यह दवा दिन में तीन बार लेनी चाहिए।", "दवा दिन में 3 बार लेनी चाहिए।", "दवा दिन में 5 बार लेनी चाहिए।"),
]


@pytest.mark.parametrize("metric", [ContextAdherence, Faithfulness])
@pytest.mark.parametrize(("context", "right", "wrong"), PAIRS)
async def test_another_number_or_a_denial_on_one_side_fails(metric, context, right, wrong):
    passed, failed = [
        await metric(OverlapJudge()).score(RagRecord(question="?", contexts=[context], response=response))
        for response in (right, wrong)
    ]

    assert (passed.label, failed.label) == ("pass", "fail")


async def test_the_explanation_names_both_numbers():
    context = "Der Turm ist mit der Antenne 330 Meter hoch und wurde für die Ausstellung gebaut."
    response = "Der Turm ist mit der Antenne 300 Meter hoch."

    (vote,) = await OverlapJudge().vote_adherence(RagRecord(question=None, contexts=[context], response=response), 1)

    assert 'says "300 Meter" where the context says "330 Meter"' in vote.explanation


@pytest.mark.parametrize(
    "contexts",
    [
        ["Der Turm ist 330 Meter hoch.", "Mit der alten Antenne war der Turm 300 Meter hoch."],
        [
            "Der Turm ist 300 Meter hoch und wurde nicht von Eiffel allein geplant, sondern von 2 Ingenieuren seiner Firma."
        ],
    ],
)
async def test_a_sentence_that_agrees_or_denies_something_else_is_no_contradiction(contexts):
    record = RagRecord(question=None, contexts=contexts, response="Der Turm ist 300 Meter hoch.")

    (vote,) = await OverlapJudge().vote_adherence(record, 1)

    assert vote.grounded
