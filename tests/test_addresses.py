from __future__ import annotations

import pytest

from ragspan.addresses import secrets_in_url, shown_url


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://user:pw@host:1/path?query#fragment", "https://host:1/path"),
        ("http://localhost:4318", "http://localhost:4318"),
        ("http://host/api/public/otel/v1/traces", "http://host/api/public/otel/v1/traces"),
        ("http://host/v1beta/openai/", "http://host/v1beta/openai/"),
        ("http://host/t0ken/v1/traces", "http://host/…/v1/traces"),
        ("http://host/SECRET/v1", "http://host/…/v1"),
        ("http://host/123456", "http://host/…"),
        ("user:pw@host:4317", "host:4317"),
        ("host:4317/t0ken", "host:4317/…"),
        ("http://[::1]:4318/v1", "http://[::1]:4318/v1"),
        ("http://[::1", "[not a URL]"),
    ],
)
def test_an_address_is_shown_without_what_may_be_secret(url, shown):
    assert shown_url(url) == shown


def test_all_that_is_not_shown_is_a_secret_in_each_of_its_spellings():
    found = set(secrets_in_url("http://bob:p%40ss@host/v1/t0ken/chat?key=qu%2Fery&n=1#frag"))

    assert found >= {"bob", "p%40ss", "p@ss", "Ym9iOnBAc3M=", "t0ken", "qu/ery", "key=qu%2Fery&n=1", "frag"}
    assert not {"v1", "chat", "host"} & found


def test_what_is_no_address_is_a_secret_as_a_whole():
    assert list(secrets_in_url("http://[::1")) == ["http://[::1"]
