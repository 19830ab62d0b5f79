"""Numbers, dates, times, names and denials in other formats pass, and their neighbours do not."""

from __future__ import annotations

import pytest

from ragspan import RagRecord, Score
from ragspan.judges import OverlapJudge
from ragspan.metrics import ContextAdherence

# What the context says | the same in another format | its neighbour.
ROWS = """
The last train leaves at 19:20. | The last train leaves at 7:20 p.m. | The last train leaves at 7:20 a.m.
The last train leaves at 19.20. | The last train leaves at 7:20 p.m. | The last train leaves at 7:50 p.m.
The last train leaves at 7.20 p.m. | The last train leaves at 19:20. | The last train leaves at 17:20.
The office opens at 8 a.m. | The office opens at 08:00. | The office opens at 18:00.
The office opens at 8.30 on weekdays. | The office opens at 8:30 on weekdays. | The office opens at 9:30 on weekdays.
Lunch is served at noon. | Lunch is served at 12:00. | Lunch is served at 11:00.
The gate closes at midnight. | The gate closes at 00:00. | The gate closes at 22:00.
The gate closes at 18h30. | The gate closes at 6:30 p.m. | The gate closes at 6:30 a.m.
Support answers from 9am to 5pm. | Support answers from 9:00 to 17:00. | Support answers from 9:00 to 19:00.
The hall has one hundred and twenty seats. | The hall has 120 seats. | The hall has 100 seats.
The hall has 120 seats. | The hall has one hundred and twenty seats. | The hall has one hundred and thirty seats.
The hall has 120 seats. | The hall has one hundred twenty seats. | The hall has two hundred twenty seats.
A ticket costs $0.99. | A ticket costs 99 cents. | A ticket costs 89 cents.
A ticket costs 99 cents. | A ticket costs €0.99. | A ticket costs €0.89.
The toll is £1.50 a day. | The toll is 150 pence a day. | The toll is 250 pence a day.
The box holds a dozen eggs. | The box holds 12 eggs. | The box holds 10 eggs.
The box holds 24 eggs. | The box holds two dozen eggs. | The box holds three dozen eggs.
The walk takes two and a half hours. | The walk takes 2.5 hours. | The walk takes 3.5 hours.
The walk takes 2.5 hours. | The walk takes two and a half hours. | The walk takes three and a half hours.
The walk takes 90 minutes. | The walk takes one and a half hours. | The walk takes two and a half hours.
The walk takes 90 minutes. | The walk takes an hour and a half. | The walk takes two hours and a half.
Half of the fee is refunded. | 50 % of the fee is refunded. | 60 % of the fee is refunded.
The refund is 50% of the fee. | The refund is half of the fee. | The refund is a quarter of the fee.
The refund is 25% of the fee. | The refund is a quarter of the fee. | The refund is three quarters of the fee.
The refund is three quarters of the fee. | The refund is 75 percent of the fee. | The refund is 70 percent of the fee.
Members pay two thirds of the price. | Members pay 2/3 of the price. | Members pay 1/3 of the price.
The recipe takes 1/2 cup of sugar. | The recipe takes half a cup of sugar. | The recipe takes two cups of sugar.
The recipe takes 1½ cups of sugar. | The recipe takes 1.5 cups of sugar. | The recipe takes 2.5 cups of sugar.
Revenue grew in the first quarter of 2023. | Revenue grew in Q1 2023. | Revenue grew in Q3 2023.
Revenue grew in Q4 of 2023. | Revenue grew in the fourth quarter of 2023. | Revenue grew in the second quarter of 2023.
Delivery takes 3-5 days. | Delivery takes three to five days. | Delivery takes three to six days.
Delivery takes 3 to 5 days. | Delivery takes 3–5 days. | Delivery takes 4–5 days.
Delivery takes between 3 and 5 days. | Delivery takes 3 to 5 days. | Delivery takes 2 to 5 days.
The clinic treats ages 18-65. | The clinic treats ages 18 to 65. | The clinic treats ages 16 to 65.
The tool needs Python 3.10. | The tool needs Python 3.10. | The tool needs Python 3.1.
The tool needs Python 3.1. | The tool needs Python 3.1. | The tool needs Python 3.10.
The fix came with version 2.4.1. | The fix came with v2.4.1. | The fix came with v2.4.2.
The fix came with v5.10. | The fix came with version 5.10. | The fix came with version 5.1.
The fix came with release 1.20 of the library. | The fix came with release 1.20 of the library. | The fix came with release 1.2 of the library.
The pH of the pool is 7.40. | The pH of the pool is 7.4. | The pH of the pool is 7.04.
The ratio was 1.5 in 2020. | The ratio was 1.50 in 2020. | The ratio was 1.05 in 2020.
Leave is covered by section 2.10. | Leave is covered by section 2.10. | Leave is covered by section 2.1.
The price rose to 3.50 dollars. | The price rose to $3.5. | The price rose to $3.05.
It is not uncommon for parts to fail. | It is common for parts to fail. | It is uncommon for parts to fail.
Delays are not uncommon in winter. | Delays are common in winter. | Delays are uncommon in winter.
The change is not impossible. | The change is possible. | The change is impossible.
The side effect is not unusual. | The side effect is usual. | The side effect is unusual.
The plan is not unlimited. | The plan is limited. | The plan is unlimited.
The town has 45,000 inhabitants. | The town has 45k inhabitants. | The town has 54k inhabitants.
The town has 45k inhabitants. | The town has 45,000 inhabitants. | The town has 4,500 inhabitants.
The town has 45 000 inhabitants. | The town has 45,000 inhabitants. | The town has 46,000 inhabitants.
The town has 45,000 inhabitants. | The town has forty-five thousand inhabitants. | The town has fifty-five thousand inhabitants.
Sales were £1.2bn last year. | Sales were 1.2 billion pounds last year. | Sales were 1.2 million pounds last year.
Sales were £1,200 million last year. | Sales were £1.2bn last year. | Sales were £1.2m last year.
Sales were $3.4M last year. | Sales were 3.4 million dollars last year. | Sales were 4.3 million dollars last year.
The fund holds EUR 2.5 million. | The fund holds €2.5m. | The fund holds €2.5bn.
The fund holds 2,500,000 euros. | The fund holds €2.5 million. | The fund holds €25 million.
The ticket costs USD 40. | The ticket costs $40. | The ticket costs €40.
The ticket costs 40 euros. | The ticket costs €40. | The ticket costs $40.
The ticket costs €40. | The ticket costs 40 EUR. | The ticket costs 40 GBP.
The ticket costs £12.50. | The ticket costs 12.50 pounds. | The ticket costs 15.20 pounds.
The ticket costs 300 yen. | The ticket costs ¥300. | The ticket costs ¥330.
The ticket costs 12 Swiss francs. | The ticket costs CHF 12. | The ticket costs CHF 20.
The server listens on 10.0.0.12. | The server listens on 10.0.0.12. | The server listens on 10.0.0.21.
The gateway is 192.168.1.1. | The gateway is 192.168.1.1. | The gateway is 192.168.1.10.
The proxy runs on port 8080. | The proxy runs on port 8080. | The proxy runs on port 8008.
The valve is part AB-1234. | The valve is part AB1234. | The valve is part AB-1243.
The valve is part no. 77-420-B. | The valve is part no. 77-420-B. | The valve is part no. 77-402-B.
The valve fits the model X200. | The valve fits the model X-200. | The valve fits the model X-300.
The form is ISO 9001 certified. | The form is ISO-9001 certified. | The form is ISO-9002 certified.
Signatures use SHA-256. | Signatures use SHA256. | Signatures use SHA512.
The contract ends on 2024-03-05. | The contract ends on 5 March 2024. | The contract ends on 5 May 2024.
The contract ends on 5 March 2024. | The contract ends on 2024-03-05. | The contract ends on 2024-03-15.
The contract ends on March 5, 2024. | The contract ends on 5 March 2024. | The contract ends on 3 March 2024.
The contract ends on March 5th, 2024. | The contract ends on 05.03.2024. | The contract ends on 05.04.2024.
The contract ends on 25/12/2024. | The contract ends on December 25, 2024. | The contract ends on December 24, 2024.
The contract ends on 12/25/2024. | The contract ends on 25 December 2024. | The contract ends on 25 November 2024.
The contract ends on 3 Sept 2024. | The contract ends on 3 September 2024. | The contract ends on 3 October 2024.
The contract ends in 2024-03. | The contract ends in March 2024. | The contract ends in April 2024.
The contract ends in March '24. | The contract ends in March 2024. | The contract ends in March 2023.
The law dates from the 1980s. | The law dates from the 1980s. | The law dates from the 1990s.
The law dates from the 19th century. | The law dates from the nineteenth century. | The law dates from the eighteenth century.
The report covers 2019-2021. | The report covers 2019 to 2021. | The report covers 2018 to 2021.
The report covers 2019/20. | The report covers 2019-20. | The report covers 2018-19.
The colour of the centre is grey. | The color of the center is gray. | The color of the center is green.
The organisation licences the programme. | The organization licenses the program. | The organization licenses no program.
The tyre is made of aluminium. | The tire is made of aluminum. | The tire is made of copper.
The café in Zürich is open. | The cafe in Zurich is open. | The cafe in Zurich is closed.
The cafe in Malmo is open. | The café in Malmö is open. | The café in Malmö is closed.
José Núñez signed the lease. | Jose Nunez signed the lease. | Karl Perez signed the lease.
Use Wi-Fi to connect. | Use WiFi to connect. | Use Bluetooth to connect.
Send an e-mail to the desk. | Send an email to the desk. | Send a letter to the desk.
The film lasts 1 h 45 min. | The film lasts 105 minutes. | The film lasts 145 minutes.
The film lasts 2 hours. | The film lasts 120 minutes. | The film lasts 200 minutes.
The trial lasts 14 days. | The trial lasts two weeks. | The trial lasts three weeks.
The warranty lasts 24 months. | The warranty lasts two years. | The warranty lasts three years.
The pipe is 1.5 km long. | The pipe is 1,500 metres long. | The pipe is 150 metres long.
The pack weighs 500 g. | The pack weighs 0.5 kg. | The pack weighs 5 kg.
The disk holds 1 TB. | The disk holds 1 terabyte. | The disk holds 1 gigabyte.
The room is 20°C warm. | The room is 20 degrees Celsius warm. | The room is 20 degrees Fahrenheit warm.
The rate is 0.5%. | The rate is 0.5 percent. | The rate is 5 percent.
The rate is .5 percent. | The rate is 0.5%. | The rate is 1.5%.
The rate is five per cent. | The rate is 5 %. | The rate is 15 %.
He came third in the race. | He came 3rd in the race. | He came 2nd in the race.
It happened twice a year. | It happened two times a year. | It happened three times a year.
It is the 21st edition. | It is the twenty-first edition. | It is the twenty-second edition.
Chapter IV covers refunds. | Chapter 4 covers refunds. | Chapter 6 covers refunds.
Visitors were 1,204,331 in all. | Visitors were 1.204 million in all. | Visitors were 1,204,313 in all.
The dam holds 3 million litres. | The dam holds 3,000,000 litres. | The dam holds 300,000 litres.
The call rate is limited to 10 requests per minute. | The call rate is limited to 10 requests a minute. | The call rate is limited to 10 requests per second.
The server has 16 GB of memory. | The server has 16GB of memory. | The server has 32GB of memory.
The engine makes 150hp. | The engine makes 150 hp. | The engine makes 105 hp.
Call 555-0199 for help. | Call 555 0199 for help. | Call 555 0191 for help.
""".strip()
IN_OTHER_LANGUAGES = """
Le prix est de 12,50 euros par mois. | Le prix est de 12.50 € par mois. | Le prix est de 15,20 euros par mois.
Le pont mesure 1 250 mètres de long. | Le pont mesure 1250 mètres de long. | Le pont mesure 1520 mètres de long.
Der Preis beträgt 1.250,50 Euro im Jahr. | Der Preis beträgt 1250,50 Euro im Jahr. | Der Preis beträgt 1520,50 Euro im Jahr.
El plazo es de 2,5 años. | El plazo es de 2.5 años. | El plazo es de 3,5 años.
O curso custa R$ 1.200,00 por mês. | O curso custa 1200 reais por mês. | O curso custa 2100 reais por mês.
""".strip()
QUESTION = "What do we know about this?"
"""Shows the language, which a short sentence may not."""
PAIRS = [(QUESTION, *line.split(" | ")) for line in ROWS.splitlines()]
PAIRS += [(None, *line.split(" | ")) for line in IN_OTHER_LANGUAGES.splitlines()]


@pytest.mark.parametrize(("question", "context", "same", "_"), PAIRS)
async def test_the_same_in_another_format_passes(judge, question, context, same, _):
    record = RagRecord(question=question, contexts=[context], response=same)

    assert (await ContextAdherence(judge, causes=False).score(record)).label == "pass"


@pytest.mark.parametrize(("question", "context", "_", "other"), PAIRS)
async def test_a_neighbour_fails(judge, question, context, _, other):
    record = RagRecord(question=question, contexts=[context], response=other)

    assert (await ContextAdherence(judge, causes=False).score(record)).label == "fail"


@pytest.mark.parametrize(
    ("date", "outcome"),
    [
        *((date, "cannot_tell") for date in ("05/03/2024", "03/05/2024", "5/3/2024")),
        *((date, "fail") for date in ("06/03/2024", "25/03/2024", "05/04/2024")),
    ],
)
async def test_a_date_that_can_be_read_in_two_ways_is_left_open_only_where_one_is_the_contexts(date, outcome):
    record = RagRecord(
        question="",
        contexts=["The lease was signed on 5 March 2024 in Oslo."],
        response=f"The lease was signed on {date} in Oslo.",
    )
    found = await ContextAdherence(OverlapJudge()).score(record)

    assert (found.label if isinstance(found, Score) else found.reason) == outcome


async def test_no_more_than_is_at_most_whatever_stands_between_its_words():
    record = RagRecord(
        question="",
        contexts=["Adults can take two tablets every 4 hours. Do not take more than 8 tablets in 24 hours."],
        response="Adults can take two tablets every 4 hours, and at most 8 in 24 hours.",
    )
    assert (await ContextAdherence(OverlapJudge()).score(record)).label == "pass"
