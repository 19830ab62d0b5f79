"""The model, loaded from its files, and the published pairs that it is checked with."""

from __future__ import annotations

import logging
import math
import sys
from dataclasses import replace

import pytest

from ragspan.exceptions import JudgeError
from ragspan.judges.detectors.base import require_reference_values
from ragspan_hhem.model import REFERENCE_PAIRS, ModelChoice, load
from ragspan_hhem.prompt import Pair


@pytest.fixture
def choice(tiny_model):
    return ModelChoice(
        model=str(tiny_model.folder),
        revision="main",
        device="cpu",
        batch_size=10,
        max_tokens=512,
        reference_check=False,
    )


def probabilities_of(classifier):
    pairs = [Pair(contexts=(pair.premise,), claim=pair.hypothesis) for pair in REFERENCE_PAIRS]
    return [finding.probability for finding in classifier.findings(pairs)]


def test_its_findings_are_the_published_formula_of_the_published_prompt(tiny_model, choice):
    texts = [
        ("The sky is blue.", "It is blue."),
        ("Bread is baked.", "The Nile is long, and ends in Egypt."),
        ("x", "y"),
    ]
    findings = load(choice).findings([Pair(contexts=(premise,), claim=claim) for premise, claim in texts])

    assert [finding.probability for finding in findings] == pytest.approx(
        [tiny_model.probability(premise, claim) for premise, claim in texts], abs=1e-5
    )


def test_a_model_that_gives_the_reference_probabilities_is_accepted(tiny_model, choice):
    references = [
        replace(pair, probability=tiny_model.probability(pair.premise, pair.hypothesis)) for pair in REFERENCE_PAIRS
    ]

    require_reference_values(probabilities_of(load(choice)), references, name="hhem")


@pytest.mark.parametrize("part", ["shared", "encoder.block.0.layer.0.SelfAttention.relative_attention_bias"])
def test_a_model_with_other_weights_in_one_place_is_found_out(tiny_model, choice, tmp_path, part):
    """As when the embeddings are not tied again, which raises no error anywhere."""
    import torch

    references = [
        replace(pair, probability=tiny_model.probability(pair.premise, pair.hypothesis)) for pair in REFERENCE_PAIRS
    ]
    name = f"t5.transformer.{part}.weight"
    folder = tiny_model.save(tmp_path, **{name: torch.roll(tiny_model.weights[name], 1, dims=0)})

    with pytest.raises(JudgeError, match="of the 7 published reference pairs"):
        require_reference_values(probabilities_of(load(replace(choice, model=str(folder)))), references, name="hhem")


def test_a_model_that_is_not_the_published_one_is_refused(choice):
    with pytest.raises(JudgeError, match="published reference pairs get another probability") as refused:
        load(replace(choice, reference_check=True))

    assert refused.value.error_type == "hhem_reference_mismatch"


@pytest.mark.parametrize(
    ("name", "content"), [("model.safetensors", b"no weights"), ("tokenizer.json", b"{}")], ids=["weights", "tokenizer"]
)
def test_a_damaged_file_is_an_error_that_says_so(tiny_model, choice, tmp_path, name, content):
    folder = tiny_model.save(tmp_path)
    (folder / name).write_bytes(content)

    with pytest.raises(JudgeError, match="HHEM cannot be loaded onto cpu") as failed:
        load(replace(choice, model=str(folder)))
    assert failed.value.error_type == "hhem_unavailable"


def test_a_device_that_is_not_there_is_an_error_that_names_it(choice):
    with pytest.raises(JudgeError, match="HHEM cannot be loaded onto tpu:7") as failed:
        load(replace(choice, device="tpu:7"))
    assert failed.value.error_type == "hhem_unavailable"


@pytest.mark.parametrize("package", ["torch", "tokenizers", "safetensors"])
def test_without_its_packages_it_says_what_to_install(choice, monkeypatch, package):
    for name in [package, *(name for name in sys.modules if name.startswith(f"{package}."))]:
        monkeypatch.setitem(sys.modules, name, None)

    with pytest.raises(JudgeError, match=r"pip install 'ragspan\[hhem\]'") as failed:
        load(choice)
    assert failed.value.error_type == "hhem_unavailable"


def test_loading_is_logged_with_its_time(choice, caplog):
    with caplog.at_level(logging.INFO, logger="ragspan"):
        load(choice)

    assert [record.getMessage().partition(" in ")[0] for record in caplog.records] == ["HHEM was loaded onto cpu"]


# The published pairs


def published(**changed):
    """The published probabilities, but for some, by their places."""
    return [changed.get(f"_{place}", pair.probability) for place, pair in enumerate(REFERENCE_PAIRS)]


def test_the_published_probabilities_are_what_is_required():
    require_reference_values(published(), REFERENCE_PAIRS, name="hhem")


@pytest.mark.parametrize("difference", [0.0009, -0.0009])
def test_another_processor_may_compute_a_little_differently(difference):
    require_reference_values(published(_3=0.8969 + difference), REFERENCE_PAIRS, name="hhem")


@pytest.mark.parametrize(
    ("wrong", "shown"), [(0.91, "by up to 0.013"), (0.1, "by up to 0.797"), (math.nan, "1 of the 7")]
)
def test_one_other_probability_is_enough_to_refuse(wrong, shown):
    with pytest.raises(JudgeError, match=shown) as refused:
        require_reference_values(published(_3=wrong), REFERENCE_PAIRS, name="hhem")

    assert refused.value.error_type == "hhem_reference_mismatch"


def test_the_order_of_a_pair_matters():
    """The published pairs hold one both ways round, with probabilities far apart: a loader that swaps them is found out."""
    forth, back = REFERENCE_PAIRS[1:3]

    assert abs(forth.probability - back.probability) > 0.5
