from __future__ import annotations

import pytest
from programs import output_of

import ragspan.judges


def test_naming_the_judges_package_loads_no_client():
    code = (
        "import sys, ragspan.judges, ragspan.metrics; print(sorted({'openai', 'msgspec', 'httpx'} & set(sys.modules)))"
    )

    assert output_of("-c", code).strip() == "[]"


@pytest.mark.parametrize("name", ragspan.judges.__all__)
def test_every_public_name_can_be_had(name):
    assert getattr(ragspan.judges, name).__name__ == name
    assert name in dir(ragspan.judges)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'Oracle'"):
        ragspan.judges.Oracle  # noqa: B018  # the access is the test
