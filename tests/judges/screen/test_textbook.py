"""The examples of the metrics' published descriptions and their neighbours come out as the definitions say."""

from __future__ import annotations

import pytest

from ragspan import RagRecord
from ragspan.judges import OverlapJudge
from ragspan.metrics import Completeness, ContextAdherence, Faithfulness

SUPER_BOWL = "The First AFL\u2013NFL World Championship Game, later known as Super Bowl I, was played on January 15, 1967, at the Los Angeles Memorial Coliseum."
DIET = (
    "A healthy diet includes regular consumption of fruits and vegetables.",
    "Staying hydrated by drinking sufficient water is essential for good health.",
    "Processed foods should be limited to maintain a balanced diet.",
)

ELSEWHERE = [  # the question, the context, a response with another place or time
    ("When was the first Super Bowl held?", SUPER_BOWL, "The first Super Bowl was held on January 15, 1967, in Florida."),
    ("When was the first Super Bowl held?", SUPER_BOWL, "Super Bowl I was played on January 15, 1968."),
    ("Where was Super Bowl I played?", SUPER_BOWL, "Super Bowl I was played at the Orange Bowl in Miami."),
    ("When was Super Bowl I played?", SUPER_BOWL, "Super Bowl I was played on February 15, 1967."),
    ("When did the Eiffel Tower open?", "The Eiffel Tower in Paris opened on March 31, 1889.", "The Eiffel Tower opened on March 31, 1889, in Lyon."),
    ("When was the treaty signed?", "The treaty was signed on 7 February 1992 in Maastricht.", "The treaty was signed on 7 February 1992 in Brussels."),
    ("When was the first iPhone shown?", "The first iPhone was shown by Steve Jobs on January 9, 2007, in San Francisco.", "The first iPhone was shown on January 9, 2007, in Chicago."),
    ("Where was the first World Cup?", "The first FIFA World Cup was held in Uruguay in July 1930.", "The first World Cup was held in Brazil in July 1930."),
    ("When was the bridge opened?", "The Sydney Harbour Bridge was opened on 19 March 1932 by Jack Lang.", "The bridge was opened on 19 March 1932 in Melbourne."),
    ("Who wrote Hamlet?", "Hamlet was written by William Shakespeare around 1600.", "Hamlet was written by Christopher Marlowe around 1600."),
    ("Where was she born?", "Marie Curie was born in Warsaw on 7 November 1867.", "Marie Curie was born in Krakow on 7 November 1867."),
]  # fmt: skip
PARAPHRASED = [  # the question, the contexts, a response in other words
    ("What are some tips for maintaining a healthy diet?", DIET, "Eating fruits and vegetables daily, drinking enough water, and avoiding processed foods can improve your diet."),
    ("How do I eat well?", DIET, "Regular fruits and vegetables, sufficient water, and limited processed foods make a healthy diet."),
    ("What helps me sleep?", ("A dark room helps people fall asleep.", "Caffeine in the evening delays sleep.", "Regular exercise improves the quality of sleep."), "A dark room, no caffeine in the evening, and regular exercise help you sleep."),
    ("How do I save energy?", ("Turning down the heating by one degree saves about 6 percent of energy.", "LED lamps use less power than other lamps."), "Turning the heating down by one degree and using LED lamps saves energy."),
    ("How do I care for the plant?", ("The plant should be watered once a week.", "It needs indirect sunlight.", "Fertilise it every spring."), "Water the plant once a week, give it indirect sunlight, and fertilise it every spring."),
    ("How are passwords kept safe?", ("Passwords should have at least 12 characters.", "A password should never be used twice.", "A password manager stores passwords safely."), "Use at least 12 characters, never use a password twice, and store passwords in a password manager."),
    ("What is recycled?", ("Paper and glass are collected every Monday.", "Plastic is collected every second Friday."), "Paper and glass are collected on Mondays, and plastic every second Friday."),
]  # fmt: skip
PARTIAL = [  # the question, the context, a true response that leaves most out, and a full one
    ("Who was Galileo Galilei?", "Galileo Galilei was an Italian astronomer.", "Galileo Galilei was Italian.", "Galileo Galilei was an Italian astronomer."),
    ("Who was Galileo Galilei?", "Galileo Galilei was an Italian astronomer, physicist and engineer from Pisa.", "Galileo Galilei was Italian.", "Galileo Galilei was an Italian astronomer, physicist and engineer from Pisa."),
    ("Who was Marie Curie?", "Marie Curie was a Polish-French physicist and chemist who did research on radioactivity.", "Marie Curie was Polish.", "Marie Curie was a Polish-French physicist and chemist who did research on radioactivity."),
    ("Who is Ada Lovelace?", "Ada Lovelace was an English mathematician.", "Ada Lovelace was English.", "Ada Lovelace was an English mathematician."),
    ("What is Kafka?", "Kafka is a distributed platform for event streaming.", "Kafka is distributed.", "Kafka is a distributed platform for event streaming."),
    ("What is a quokka?", "A quokka is a small marsupial that lives in Western Australia and is active at night.", "A quokka is a marsupial.", "A quokka is a small marsupial of Western Australia that is active at night."),
    ("What does the plan include?", "The plan includes unlimited calls, 20 GB of data, roaming in Europe and a free SIM card.", "The plan includes unlimited calls.", "The plan includes unlimited calls, 20 GB of data, roaming in Europe and a free SIM card."),
    ("Who may use the pool?", "Guests, members, their children and staff may use the pool until 9 pm.", "Members may use the pool.", "Guests, members, their children and staff may use the pool until 9 pm."),
    ("What are the symptoms?", "The symptoms are fever, a dry cough, headache, tiredness and a loss of smell.", "The symptoms are fever.", "The symptoms are fever, a dry cough, headache, tiredness and a loss of smell."),
    ("What is the warranty?", "The warranty covers parts and labour for two years, except batteries.", "The warranty covers parts.", "The warranty covers parts and labour for two years, except batteries."),
]  # fmt: skip


async def score_of(metric, question, contexts, response):
    record = RagRecord(question=question, contexts=contexts, response=response)
    return (await metric(OverlapJudge()).score(record)).value


@pytest.mark.parametrize(("question", "context", "response"), ELSEWHERE)
async def test_another_place_or_time_fails(question, context, response):
    assert await score_of(ContextAdherence, question, [context], response) < 0.5
    assert await score_of(Faithfulness, question, [context], response) < 0.8


@pytest.mark.parametrize(("question", "contexts", "response"), PARAPHRASED)
async def test_facts_of_several_contexts_in_other_words_pass(question, contexts, response):
    assert await score_of(ContextAdherence, question, contexts, response) >= 0.5
    assert await score_of(Faithfulness, question, contexts, response) >= 0.8
    assert await score_of(Completeness, question, contexts, response) >= 0.5


@pytest.mark.parametrize(("question", "context", "partial", "full"), PARTIAL)
async def test_a_response_that_leaves_out_half_or_more_is_true_and_incomplete(question, context, partial, full):
    assert await score_of(ContextAdherence, question, [context], partial) >= 0.5
    assert await score_of(Completeness, question, [context], partial) < 0.5
    assert await score_of(Completeness, question, [context], full) > 0.8
