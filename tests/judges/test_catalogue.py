"""Judges by name, from this package and from others."""

from __future__ import annotations

import pytest
from fakes import FakeJudge

from ragspan import ConfigurationError, judges
from ragspan.judges import Jury, OpenAIJudge, OverlapJudge, Price, named_judge
from ragspan.judges.judge_catalogue import judge_of

KEY = "sk-0123456789"


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


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gpt-4o", "did you mean 'openai:gpt-4o'\\?"),
        ("antropic:claude", "did you mean 'anthropic'"),
        ("anthropic", "'anthropic' names no model: the judge should be like 'anthropic:claude-haiku-4-5'"),
        (
            "openai:http://h/v1",
            "'openai:gpt-4o-mini', without an address: put that into RAGSPAN_JUDGE_BASE_URL, or give base_url=$",
        ),
        ("claude-haiku-4-5", "did you mean 'anthropic:claude-haiku-4-5'\\?; there are"),
        ("zebra", "there is no judge 'zebra' here .*; there are: overlap, openai:<model>, .*, house"),
        ("langchain:x:y", r"pip install 'ragspan\[langchain\]'"),
        ("gone", "nowhere:Judge cannot be imported"),
    ],
)
def test_a_wrong_name_is_an_error_that_says_what_may_be_meant(house, name, message):
    with pytest.raises(ConfigurationError, match=message):
        named_judge(name)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        (
            "openai:m",
            {"base_url": "http://[::1"},
            "^base_url, RAGSPAN_JUDGE_BASE_URL or OPENAI_BASE_URL should be an address such as 'http://localhost:8000/v1'$",
        ),
        ("openai:m", {"timeuot": 3}, "'openai:m' cannot be made: TypeError: .* unexpected keyword argument 'timeuot'"),
        ("openai:m", {"timeout": KEY}, "^timeout is a text, but should be a number of seconds, more than 0$"),
        ("openai:m", {"extra_headers": [KEY]}, "^extra_headers is a list, but should be a dictionary of fields, such "),
        (
            "openai:m",
            {"extra_body": 7},
            "^extra_body is 7, .*dictionary of fields, such as {'reasoning_effort': 'low'}$",
        ),
        ("openai:m", {"max_retries": -1}, "^max_retries is -1, but should be a whole number, at least 0$"),
        ("openai:m", {"temperature": "0"}, "^temperature is a text, but should be a number from 0 to 2$"),
        ("openai:m", {"max_context_chars": 0}, "^max_context_chars is 0, but should be a whole number, at least 1$"),
        ("openai:m", {"mode": "x"}, "^mode is a text, but should be one of one_request, thorough$"),
        ("openai:m", {"price": "1"}, r"^price is a text, but should be a Price, such as Price\(0.15, 0.60\)$"),
        ("openai:m", {"price": [1, -1]}, r"^a price's output is -1\.0, but should be a number of dollars, 0 or more$"),
        ("broken:m", {"api_key": KEY}, "'broken:m' cannot be made: LookupError: no model m for …"),
        ("broken:m", {"api_key": ["for ", KEY, "model"]}, "'broken:m' cannot be made: LookupError: no … m for …"),
    ],
)
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
