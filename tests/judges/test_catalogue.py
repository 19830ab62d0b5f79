"""Judges by name, from this package and from others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fakes import FakeJudge

from ragspan import ConfigurationError, judges
from ragspan.judges import Jury, LLMJudge, OpenAIJudge, OverlapJudge, Price, named_judge
from ragspan.judges.judge_catalogue import judge_of

KEY = "sk-0123456789"
WRONG = json.loads(Path(__file__).with_name("wrong_judges.json").read_text("utf-8"))
"""Names, and options of a judge, each with the pattern of what is said."""


class HouseJudge(FakeJudge):
    """Judges as a company likes it.

    Args:
        model: what it is called.
        strict: an option.
    """

    def __init__(self, model="small", *, strict=False):
        super().__init__(name=f"house:{model}")
        self.strict = strict


def breaks(model, **_):
    raise LookupError(f"no model {model} for {KEY}")


@pytest.fixture
def house(register):
    register(
        "ragspan_judge",
        house=f"{__name__}:HouseJudge",
        broken=f"{__name__}:breaks",
        gone="nowhere:Judge",
    )


def test_the_embedded_judge_and_providers_have_names():
    assert isinstance(named_judge("overlap"), OverlapJudge)
    judge = named_judge("Anthropic: claude-haiku-4-5", api_key=KEY, price=[1, 5])

    assert isinstance(judge, OpenAIJudge)
    assert (judge.name, judge.price) == ("anthropic:claude-haiku-4-5", Price(1.0, 5.0))


@pytest.mark.parametrize(("name", "message"), WRONG["names"])
def test_a_wrong_name_is_an_error_that_says_what_may_be_meant(house, name, message):
    with pytest.raises(ConfigurationError, match=message):
        named_judge(name)


@pytest.mark.parametrize(("name", "options", "message"), WRONG["options"])
def test_a_wrong_option_is_an_error_without_its_value(house, name, options, message):
    with pytest.raises(ConfigurationError, match=message) as refusal:
        named_judge(name, **{"api_key": "sk-of-the-test", **options} if name == "openai:m" else options)

    assert KEY not in str(refusal.value)


def test_several_names_are_a_jury_with_options_for_all_or_for_each():
    for options, prices in (
        ([{"api_key": KEY, "price": [1, 2]}], [1, 1]),
        ([{"api_key": KEY, "price": [1, 2]}, {"api_key": KEY, "price": [3, 4]}], [1, 3]),
    ):
        jury = judge_of("openai:a, anthropic:b", options)

        assert isinstance(jury, Jury)
        assert jury.name == "openai:a,anthropic:b"
        assert [judge.price.input for judge in jury.judges] == prices
    for names, named in (("openai:a,anthropic:b", "2 are named"), ("openai:a", "1 is named")):
        with pytest.raises(
            ConfigurationError, match=f"options are for 3 judges, but {named}: give one for all, or one"
        ):
            judge_of(names, [{}, {}, {}])


def test_the_names_of_the_package_are_those_that_it_has():
    assert dir(judges) == judges.__all__
    with pytest.raises(AttributeError, match=r"module 'ragspan\.judges' has no attribute 'Jurry'"):
        judges.Jurry  # noqa: B018
    with pytest.raises(ConfigurationError, match=r"^model is '', but should be a model's name, such as 'gpt-4o-mini'$"):
        OpenAIJudge("", api_key=KEY)
    for arguments, said in (
        ({"client": 7}, "a ChatClient, with a method complete"),
        ({"name": " "}, "a text that is not"),
    ):
        with pytest.raises(ConfigurationError, match=f"^{next(iter(arguments))} is .*, but should be {said}"):
            LLMJudge(**{"client": OpenAIJudge("m", api_key=KEY).client, "name": "n", **arguments})
