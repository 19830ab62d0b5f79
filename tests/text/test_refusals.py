from __future__ import annotations

import pytest

from ragspan.text.responses import MAX_REFUSAL, declines, is_refusal


@pytest.mark.parametrize(
    "response",
    [
        "I do not have specific information.",
        "I don’t have any information about that.",
        "I don't know.",
        "I'm not sure.",
        "I couldn't find anything about that.",
        "I'm sorry, but I cannot answer that.",
        "Unable to answer based on given passages.",
        "The passages do not say when it opened.",
        "That isn't covered in the documents.",
        "That information isn't available.",
        "The document doesn't provide any information about the filming location.",
        "There is no mention of the price in the provided text.",
        "The answer cannot be found in the context.",
        "Unfortunately, the opening date is not mentioned in the given passages.",
        "Based on the documents, it is not possible to determine the author.",
        "I'm sorry, but I don't have that information. Is there anything else I can help you with?",
        "We don't have enough information. The question cannot be answered.",
    ],
)
def test_refusals_are_recognised(response):
    assert is_refusal(response)


@pytest.mark.parametrize(
    "response",
    [
        "",
        "The tower opened in 1889.",
        "We do not have parking.",
        "Sorry, we are not open on Sundays.",
        "Breakfast is not provided to guests.",
        "The police were unable to find the suspect.",
        "No, the scanner does not support encrypted images.",
        "There is no evidence that sugar causes hyperactivity.",
        "The text does not have to be signed.",
        "No information is shared with third parties.",
        "We cannot provide refunds after thirty days.",
    ],
)
def test_answers_that_deny_something_are_no_refusals(response):
    assert not is_refusal(response)


def test_a_stock_phrase_at_the_end_of_a_full_answer_makes_no_refusal():
    response = "The tower opened in 1889. It is 330 metres tall. The passages do not mention its colour."

    assert not is_refusal(response)


def test_an_answer_of_which_half_refuses_is_a_refusal_whatever_courtesies_follow():
    assert is_refusal("The passages do not mention its colour. It is 330 metres tall. I hope this helps!")


def test_only_the_beginning_of_a_response_is_looked_at():
    beginning = "I don't know. " + "and so on " * (MAX_REFUSAL // 10)

    assert is_refusal(f"{beginning}. It opened in 1889. It is 330 metres tall.")


@pytest.mark.parametrize(
    "response",
    [
        "Das kann ich anhand der Texte leider nicht sagen, denn dazu liegen keine Informationen vor.",
        "Der Kontext enthält keine Informationen über den Preis.",
        "Je ne peux pas répondre à cette question.",
        "El texto no menciona cuándo se abrió.",
        "Il testo non fornisce informazioni sul prezzo.",
        "O texto não fornece informações sobre o preço.",
        "В тексте не указано, когда открылся музей.",
        "Metinde bu konuda bilgi bulunmamaktadır.",
        "لا توجد معلومات عن السعر في النص.",
        "文中没有提到价格。",
        "本文には価格についての情報がありません。",
        "본문에는 가격에 대한 정보가 없습니다.",
        "इस बारे में कोई जानकारी नहीं है।",
        "Không có thông tin về giá trong văn bản.",
    ],
)
def test_refusals_in_other_languages_are_recognised(response):
    assert is_refusal(response)


@pytest.mark.parametrize(
    "response",
    [
        "Das Medikament darf nicht mit Alkohol eingenommen werden.",
        "Hunde sind im Museum nicht erlaubt, und es gibt keine Parkplätze.",
        "Le musée n'est pas ouvert le lundi.",
        "No se puede devolver el artículo después de 30 días.",
        "Препарат нельзя принимать с алкоголем.",
        "İlaç alkolle birlikte alınmamalıdır.",
        "商品在购买三十天后不可以退货。",
        "この薬はアルコールと一緒に服用してはいけません。",
        "이 약은 알코올과 함께 복용하지 마십시오.",
    ],
)
def test_denials_in_other_languages_are_no_refusals(response):
    assert not is_refusal(response)


@pytest.mark.parametrize(
    "response",
    ["Je ne sais pas.", "No lo sé.", "No se menciona.", "Lo siento, no encuentro la respuesta.", "Keine Angabe.", "Nie wiem.", "Bilmiyorum.", "Non lo so.", "Не знаю."],
)  # fmt: skip
def test_a_few_words_in_any_of_the_languages_decline(response):
    assert declines(response)


@pytest.mark.parametrize("response", ["Le prix est de 49 euros.", "No pets.", "Nein, Hunde sind nicht erlaubt.", "La tienda está cerrada."])  # fmt: skip
def test_a_few_words_that_deny_something_do_not(response):
    assert not declines(response)
