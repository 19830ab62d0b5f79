"""Metrics by name, from this package and from others."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from fakes import FakeJudge

from ragspan import ConfigurationError, NotApplicable
from ragspan.config import Settings
from ragspan.metrics import FaithfulnessWithHHEM
from ragspan.metrics.metric_catalogue import BUILT_IN, guide_of, judge_from, metric_names, metrics_from
from ragspan.outcomes import Score


@dataclass(frozen=True)
class Brevity:
    """Is the response short?

    More about it.
    """

    limit: int = 10
    name: str = "brevity"

    async def score(self, record):
        return Score(value=float(len((record.response or "").split()) <= self.limit), threshold=0.5)


@dataclass(frozen=True)
class Asks:
    judge: object
    polls: int = 3
    name: str = "asks"

    async def score(self, record):
        return NotApplicable(reason="no_contexts")


class Hhem:
    """Stands for a verifier of another package, and notes what it is made with."""

    name = "hhem"

    def __init__(self, **options):
        self.options = options

    async def verify_claims(self, record, claims):
        return []


@pytest.fixture
def others(register):
    register("ragspan_metric", brevity=f"{__name__}:Brevity", asks=f"{__name__}:Asks", broken="nowhere:Metric")


@pytest.fixture
def hhem(register):
    register("ragspan_judge", hhem=f"{__name__}:Hhem")


def test_metrics_of_other_packages_have_names_and_get_what_they_take(others):
    settings = Settings.from_environment({"RAGSPAN_METRICS": "brevity,asks", "RAGSPAN_JUDGE_POLLS": "1"})
    judge = FakeJudge()

    short, asks = metrics_from(settings, judge=judge)

    assert short == Brevity()
    assert (asks.judge, asks.polls) == (judge, 1)
    assert metric_names() == [*BUILT_IN, "asks", "brevity", "broken"]


def test_a_report_says_what_the_metric_asks_in_the_first_line_of_its_docstring(others):
    assert guide_of("brevity").question == "Is the response short?"
    assert guide_of("asks") is None  # what dataclasses write is no question
    assert guide_of("not_registered") is None
    assert guide_of("faithfulness").question == "Which of its claims do the contexts support?"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "faithfullness",
            r"there is no metric 'faithfullness' here; did you mean 'faithfulness'\?; there are: context_adherence, ",
        ),
        ("broken", "nowhere:Metric cannot be imported"),
    ],
)
def test_an_unknown_name_is_an_error_that_says_what_may_be_meant(others, name, message):
    for settings, chosen in ((Settings(metrics=(name,)), None), (Settings(), [name])):
        with pytest.raises(ConfigurationError, match=message):
            metrics_from(settings, chosen)


def test_by_its_name_hhem_has_the_settings_device_as_a_judge_too(hhem):
    [made] = metrics_from(Settings(metrics=("faithfulness_hhem",), hhem_device="cuda"), judge=FakeJudge())

    assert made.verifier.options == judge_from(Settings(judge="hhem", hhem_device="cuda")).options == {"device": "cuda"}
    assert FaithfulnessWithHHEM(FakeJudge()).verifier.options == {}


@pytest.mark.parametrize("judge", [None, 7, FakeJudge, [], "", {"a": 1}])
def test_what_is_no_judge_is_an_error(judge):
    with pytest.raises(
        ConfigurationError, match=r"^judge is .*, but should be a judge, .* list of several for a jury$"
    ):
        metrics_from(Settings(), judge=[judge] if judge is None else judge)


def test_names_in_a_list_are_a_jury_and_a_mode_is_that_of_language_models(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    settings = Settings(judge_mode="thorough", metric_timeout=90.0)
    adherence, _ = metrics_from(settings, judge=["openai:a", "openai:b"])

    assert (adherence.judge.name, adherence.judge.prompt_version) == ("openai:a,openai:b", "8-thorough")


def test_without_its_package_hhem_is_an_error_that_says_what_to_install(register):
    register("ragspan_judge")

    with pytest.raises(ConfigurationError, match=r"pip install 'ragspan\[hhem\]'"):
        metrics_from(Settings(metrics=("faithfulness_hhem",)))
