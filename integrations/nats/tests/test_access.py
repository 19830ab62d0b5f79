"""Where the broker is, and how we sign in: what is accepted, and that secrets stay secret."""

from __future__ import annotations

import ssl

import pytest

from ragspan import ConfigurationError
from ragspan_nats import BrokerAccess


@pytest.mark.parametrize(
    ("url", "servers", "place", "given"),
    [
        ("nats://broker", ["nats://broker:4222"], "broker:4222", {}),
        ("nats://broker:5000/", ["nats://broker:5000"], "broker:5000", {}),
        ("nats://[::1]:5000", ["nats://[::1]:5000"], "[::1]:5000", {}),
        ("nats://a, nats://b:5000", ["nats://a:4222", "nats://b:5000"], "a:4222, b:5000", {}),
        (
            "nats://ann:p%2F%40%3Aw@broker",
            ["nats://broker:4222"],
            "broker:4222",
            {"user": "ann", "password": "p/@:w"},
        ),
        ("nats://to%2Fken@broker", ["nats://broker:4222"], "broker:4222", {"token": "to/ken"}),
    ],
)
def test_an_address_names_servers_and_may_hold_the_credentials(url, servers, place, given):
    access = BrokerAccess(url=url)
    assert access.options() == {"servers": servers, "inbox_prefix": "_INBOX", **given}
    assert access.place == place


@pytest.mark.parametrize(
    "url",
    [
        "",
        "broker",
        "http://SECRET@broker",
        "nats://",
        "nats://broker:port",
        "nats://broker:0",
        "nats://[SECRET",
        "nats://broker,",
        "nats://ann:SECRET",
        "nats://ann:12#SECRET@broker",
    ],
)
def test_an_invalid_address_is_refused_without_being_shown(url):
    with pytest.raises(
        ConfigurationError,
        match=r"^the broker's address should be like nats://host:4222 or tls://host:4222; in a password write ",
    ) as refusal:
        BrokerAccess(url=url)
    assert "SECRET" not in str(refusal.value)


FILES = ["credentials_file", "ca_file", "certificate_file"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        # What is no file may be the secret itself.
        *(
            ({field: value}, rf"{field} \(RAGSPAN_NATS_{field.upper()}\) should name a file, but there is no")
            for field in FILES
            for value in ("SECRET", "SECRET\0", "SECRET" * 999)
        ),
        (
            {"url": "nats://SECRET@broker", "credentials_file": __file__},
            "credentials_file and the address both say how to sign in, but one way is enough$",
        ),
        *(
            (
                {"inbox_prefix": prefix},
                "inbox_prefix is .*, but should be letters, digits, '_' and '-', with dots between them$",
            )
            for prefix in ("", ".", "a.", "a b", "_INBOX.>", "*")
        ),
    ],
    ids=str,
)
def test_what_does_not_go_together_or_is_invalid_is_named_and_no_secret_shown(given, message):
    with pytest.raises(ConfigurationError, match=f"^{message}") as refusal:
        BrokerAccess(**{"url": "nats://broker"} | given)
    assert "SECRET" not in str(refusal.value)


@pytest.mark.parametrize(("url", "is_encrypted"), [("nats://a", False), ("tls://a", True), ("nats://a,tls://b", True)])
def test_an_address_says_whether_to_encrypt(url, is_encrypted):
    access = BrokerAccess(url=url)
    assert access.is_encrypted is is_encrypted
    assert isinstance(access.options().get("tls"), ssl.SSLContext) is is_encrypted


@pytest.mark.parametrize("name", ["ca_file", "certificate_file"])
def test_a_file_without_certificates_is_refused_when_it_is_read(name):
    words = "^ca_file or certificate_file cannot be read as certificates: SSLError$"
    with pytest.raises(ConfigurationError, match=words):
        BrokerAccess(url="nats://broker", **{name: __file__}).options()


def test_all_of_it_may_come_from_the_environment(monkeypatch):
    for name in FILES:
        monkeypatch.setenv(f"RAGSPAN_NATS_{name.upper()}", __file__)
    monkeypatch.setenv("RAGSPAN_NATS_INBOX_PREFIX", "_INBOX_app")
    access = BrokerAccess.from_environment("nats://broker")
    assert access.inbox_prefix == "_INBOX_app"
    assert [getattr(access, name) for name in FILES] == [__file__] * 3


def test_no_secret_is_in_its_text():
    access = BrokerAccess(url="nats://ann:SECRET@broker")
    assert "SECRET" not in f"{access!r} {access} {access.place}"
