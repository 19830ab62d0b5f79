"""Right answers as users write them, which must not fail, and a few that must not pass."""

from __future__ import annotations

import pytest

import ragspan

RIGHT = [
    (
        "How long does descaling take?",
        "Descale the machine every two months. Use the descaling program. The process takes about 25 minutes.",
        "Descaling takes around 25 minutes.",
    ),
    (
        "When is the gym open on Sundays?",
        "The gym is open Monday to Friday from 6 am to 11 pm and on weekends from 8 am to 8 pm.",
        "On weekends, so also on Sundays, the gym is open from 8 am to 8 pm.",
    ),
    ("Is it open on Saturday?", "Mon-Fri 9-18, Sat 10-14.", "Yes, from 10 am to 2 pm."),
    (
        "How long should I boil the eggs?",
        "For soft-boiled eggs cook six minutes; for hard-boiled eggs cook ten minutes.",
        "Boil soft eggs for 6 minutes and hard eggs for 10 minutes.",
    ),
    (
        "Can I return opened software?",
        "Items may be returned within 30 days. Opened software and underwear are excluded from returns.",
        "No. Once opened, software can't be returned.",
    ),
    ("How do visitors come?", "30% of the visitors come by train.", "The other 70% of the visitors come by car."),
    ("How long does it take?", "The trip takes 2 hours and 15 minutes.", "It takes 135 minutes."),
    ("How long?", "The film takes 2 hours.", "It takes about 120 minutes."),
    ("When?", "Support is reached by chat around the clock.", "Through the chat, which runs 24 hours a day."),
    ("What does it weigh?", "It weighs 2 kg.", "About 2000 grams."),
    ("How long?", "The trial lasts 14 days.", "About two weeks."),
    ("How warm?", "Keep the room at 25 °C.", "About 77 °F."),
    ("How long?", "The film takes two and a half hours.", "The film takes 150 minutes."),
    ("How long?", "The warranty is one and a half years.", "The warranty lasts 18 months."),
    (
        "What is two months' rent?",
        "The monthly rent is $1,450. The security deposit is $2,900.",
        "Two months' rent is $2,900.",
    ),
    (
        "What does a three-day trip pay?",
        "The allowance is EUR 28 for a full day and EUR 14 for the day of arrival and the day of departure.",
        "A trip of three days gives 14 + 28 + 14 = 56 euros.",
    ),
    (
        "Who founded it?",
        "The company was founded in 1987 by Ingrid Solberg and Peter Aas.",
        "I. Solberg and P. Aas founded it in the late 1980s.",
    ),
    ("How large is the rotor?", "The rotor has a diameter of 138 metres.", "The rotor's radius is 69 m."),
    (
        "What does a guest pay?",
        "A meal costs 85 kroner. Guests pay the double price.",
        "Guests pay 170 NOK for a meal.",
    ),
    (
        "Do I need a receipt for 60 euros?",
        "Amounts of up to 50 euros need no receipt.",
        "Yes, since 60 euros is above the limit of 50.",
    ),
    (
        "Do I need a receipt for 30 euros?",
        "Amounts of up to 50 euros need no receipt. Receipts are handed in within 30 days.",
        "No receipt is needed for €30.",
    ),
    ("Sum?", "Ticket A costs 3 euros, ticket B 4 euros and ticket C 5 euros.", "3 + 4 + 5 = 12 euros."),
    (
        "Sum?",
        "The allowance is 28 euros for a full day and 14 euros for arrival and departure.",
        "14 + 28 + 28 + 14 = 84 euros.",
    ),
    (
        "Sum?",
        "The allowance is 28 euros for a full day and 14 euros for arrival and departure.",
        "2 x 14 + 2 x 28 = 84 euros.",
    ),
    ("How long at most?", "A loan lasts four weeks and can be renewed twice.", "4 + 4 + 4 = 12 weeks."),
    ("Price for two adults and a child?", "Tickets cost 12 euros, children pay half.", "2 × 12 + 6 = 30 euros."),
    ("Cost for ten users a year?", "It costs $5 per user and month.", "10 users x 12 months x $5 = $600."),
    ("When did it happen?", "The accident happened on 14 March 2019.", "It happened on 14.03.2019."),
    ("When did it happen?", "The accident happened on 14 March 2019.", "It happened on 14.3.2019."),
    ("When did it happen?", "The accident happened on 14 March 2019.", "2019/03/14"),
    ("When did it happen?", "The accident happened on 14 March 2019.", "It happened on 03/14/2019."),
    ("Wann geschah es?", "Der Unfall geschah am 14. März 2019.", "Es geschah am 14.03.2019."),
    ("Quand?", "L'accident a eu lieu le 14 mars 2019.", "L'accident a eu lieu le 14/03/2019."),
    ("How long is the trial?", "The trial lasts two weeks.", "14 days."),
    ("How long is a loan?", "A loan lasts four weeks.", "28 days."),
    ("How deep is it?", "The pool is 1.5 m deep.", "150 centimetres."),
    ("How long is the film?", "The film lasts 90 minutes.", "1.5 hours."),
    ("How long is the film?", "The film lasts 90 minutes.", "1 h 30 min."),
    ("How much in total?", "Five doses of 0.3 ml are given.", "1.5 millilitres in total."),
    ("How long is the film?", "The film lasts 135 minutes.", "The film lasts 2 h 15 min."),
    ("What was the revenue?", "The revenue was 120 million euros.", "EUR 120,000,000."),
    ("What was the revenue?", "The revenue was 120 million euros.", "0.12 billion euros."),
    ("What did it cost?", "The bridge cost 2.5 million euros.", "€2,500,000."),
    ("How many came?", "1,487 people came to the fair.", "About 1,500 people came."),
    ("Population?", "New York has 8,336,817 inhabitants.", "About 8.3 million."),
    ("How many work there?", "The company has 1,450 employees.", "Almost 1500."),
    ("When was it founded?", "It was founded in 1987.", "In the 1980s."),
    ("When was it founded?", "It was founded in 1987.", "It was founded in the 80s."),
    ("When was it built?", "The house was built in the 19th century.", "In the 1800s."),
    ("How long is it?", "The boat is 100 feet long.", "about 30 metres"),
    ("Temperature?", "Bake at 200 °C.", "392 °F"),
    ("Share each?", "The two founders share the 2.5 million euros.", "1.25 million euros each, if they share equally."),
    ("What remains?", "The budget is 28 euros. Breakfast costs 5.60 euros.", "€22.40 remain."),
    ("When is it due?", "The book was lent on 1 March. A loan lasts 21 days.", "On 22 March."),
    ("How often?", "The shop is open every day but Sunday.", "Six days a week."),
    ("Eggs?", "A dozen eggs costs 3 euros.", "12 eggs cost €3."),
    (
        "Allowance?",
        "The full-day rate is 28 euros. Half of it is paid for arrival.",
        "Half of the full-day rate, i.e. fourteen euros.",
    ),
    ("Can my 14-year-old?", "It is not approved for children under 12.", "Yes; only children under 12 are excluded."),
    (
        "Can I cancel after 10 days?",
        "You cannot cancel after 14 days.",
        "Yes, since 10 days is within the 14-day period.",
    ),
    ("Is the card free for adults?", "Adults pay 24 euros a year.", "No. Adults pay 24 euros a year."),
    ("Can I return a used item?", "Items must be unused.", "No. Items must be unused."),
    ("Is dinner included?", "Breakfast is included in the price.", "No. Only breakfast is included."),
    ("Does it have 32 GB?", "The laptop has 16 GB of memory.", "No. It has 16 GB of memory."),
    ("Until when?", "The bank is open until 5 pm.", "The bank closes at 5 pm."),
    ("Fee?", "An overdue book costs 20 cents a day.", "An overdue book costs €0.20 a day."),
    ("Fee?", "An overdue book costs 20 cents a day.", "An overdue book costs 0.20 euros a day."),
    ("Fee?", "An overdue book costs 20 cents a day.", "An overdue book costs $0.20 per day."),
    ("Fees?", "An overdue book costs 20 cents a day, at most 10 euros.", "- Books: **€0.20/day** (max. €10)"),
    (
        "Student fee?",
        "Adults pay 24 euros a year; students pay half of that. Members may borrow up to 12 books at a time.",
        "Students pay 12 euros a year.",
    ),
    ("Temperature?", "Store at 25 °C.", "Store at 77 °F."),
    ("When?", "Check-out is by 11 am.", "Check-out is by 11 in the morning."),
    ("When?", "The shop is open from 9 am to 8 pm.", "The shop closes at 8 pm."),
    ("Price?", "Entry is free of charge.", "There is no charge."),
    ("Cancel?", "Cancellation is free of charge up to 24 hours before.", "There's no charge a day before."),
    ("Price?", "A single room costs $80, a double room $110.", "Two single rooms are $160."),
    ("Price?", "Der Preis beträgt 49,90 Euro.", "Der Preis beträgt 49.90 Euro."),
    ("IBAN?", "The IBAN is DE89 3704 0044 0532 0130 00.", "The IBAN is DE89370400440532013000."),
    ("When open?", "Mon to Fri 9 to 5, Sat 10 to 2.", "On Saturday it is open from 10 to 2."),
    ("Weight?", "The bag weighs 23 kg.", "The bag weighs about 50 pounds."),
    ("Smoke?", "Smoking is prohibited in all rooms.", "You can't smoke in the rooms."),
    ("Parcels?", "Parcels over 20 kg are not accepted.", "Only parcels up to 20 kg are accepted."),
    ("Until when?", "The offer ends on 5 May 2026.", "The offer ends on 5/5/26."),
]
NOT_RIGHT = [
    ("Is parking free?", "Opening hours: Monday to Friday.", "Yes, parking is free."),
    ("Can I bring my dog on the train?", "Small dogs in a carrier travel free.", "Dogs are not allowed on the train."),
    ("Is the cake gluten free?", "The cake is made of wheat flour and eggs.", "Yes, the cake is gluten free."),
    (
        "Return window?",
        "Returns are accepted within 30 days of delivery. Items must be unused. It has a 14-inch display.",
        "You have 14 days from delivery to return an item.",
    ),
    ("?", "Paris is in France.", "text text text"),
    ("?", "Paris is in France.", "The text."),
    ("Who?", "Norvik Energy acquired Hansa Wind in 2004.", "Hansa Wind acquired Norvik Energy in 2004."),
    ("Fire?", "In case of fire, lifts must not be used.", "Take the lift."),
]
WRONG = [
    (
        "Return window?",
        "Returns are accepted within 30 days of delivery. Items must be unused.",
        "You have 14 days from delivery to return an item.",
    ),
    ("When?", "Card payments settle within two days.", "Within five days."),
    ("When?", "Card payments settle within two days.", "Card payments settle within five days."),
    ("How many?", "Members may borrow up to 12 books at a time.", "Members may borrow up to 15 books."),
    ("Fee?", "An overdue book costs 20 cents a day.", "An overdue book costs €0.50 a day."),
    ("When?", "The accident happened on 14 March 2019.", "It happened on 15 March 2019."),
    ("When?", "The accident happened on 14 March 2019.", "It happened on 15.03.2019."),
    ("Temp?", "Bake at 200 °C.", "Bake at 180 °C."),
    ("Is it open on Sunday?", "The library is closed on Sundays.", "Yes, the library is open on Sundays."),
    ("Population?", "New York has 8,336,817 inhabitants.", "New York has 6.1 million inhabitants."),
]


@pytest.fixture(scope="module")
def label():
    def of(question, context, response):
        outcome = ragspan.score(question=question, contexts=[context], response=response).outcomes["context_adherence"]
        return getattr(outcome, "label", None)

    return of


@pytest.mark.parametrize(("question", "context", "response"), RIGHT)
def test_a_right_answer_in_other_words_numbers_or_units_does_not_fail(label, question, context, response):
    assert label(question, context, response) != "fail"


@pytest.mark.parametrize(("question", "context", "response"), NOT_RIGHT)
def test_a_wrong_or_empty_answer_does_not_pass(label, question, context, response):
    assert label(question, context, response) != "pass"


@pytest.mark.parametrize(("question", "context", "response"), WRONG)
def test_another_number_or_date_fails(label, question, context, response):
    assert label(question, context, response) == "fail"


@pytest.mark.parametrize(
    "greeting",
    [
        "Hello! I am an AI assistant for the city library.",
        "Hi there! I'm your shop assistant. What can I help you with?",
        "Hello! How can I help you today?",
    ],
)
def test_a_greeting_states_nothing(greeting):
    outcome = ragspan.score(question="Hi", contexts=["The library is open on Mondays."], response=greeting)

    assert outcome.outcomes["context_adherence"].reason == "no_claims"
