"""Where the broker is, and how we sign in: what is accepted, and that secrets stay secret."""

from __future__ import annotations

import dataclasses
import ssl

import pytest

from ragspan import ConfigurationError
from ragspan_nats import BrokerAccess


@pytest.mark.parametrize(
    ("url", "servers", "place"),
    [
        ("nats://broker", ["nats://broker:4222"], "broker:4222"),
        ("nats://broker:5000/", ["nats://broker:5000"], "broker:5000"),
        ("nats://[::1]:5000", ["nats://[::1]:5000"], "::1:5000"),
        ("nats://a, nats://b:5000", ["nats://a:4222", "nats://b:5000"], "a:4222, b:5000"),
        ("nats://ann:SECRET@broker", ["nats://broker:4222"], "broker:4222"),
    ],
)
def test_an_address_names_servers(url, servers, place):
    access = BrokerAccess(url=url)
    assert access.options()["servers"] == servers
    assert access.place == place


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("nats://broker", {}),
        ("nats://ann:p%2F%40%3Aw@broker", {"user": "ann", "password": "p/@:w"}),
        ("nats://to%2Fken@broker", {"token": "to/ken"}),
    ],
)
def test_an_address_may_hold_the_credentials(url, options):
    given = BrokerAccess(url=url).options()
    del given["servers"], given["inbox_prefix"]
    assert given == options


@pytest.mark.parametrize(
    "url",
    [
        "",
        "broker",
        "broker:4222",
        "http://SECRET@broker",
        "nats://",
        "nats://:4222",
        "nats://broker:port",
        "nats://broker:70000",
        "nats://broker:0",
        "nats://[SECRET",
        "nats://broker,",
        "nats://ann:SECRET",
        "nats://ann:12#SECRET@broker",
        "nats://ann:12/SECRET@broker",
        "nats://ann:12?SECRET@broker",
    ],
)
def test_an_address_that_is_none_is_refused_without_being_shown(url):
    with pytest.raises(ConfigurationError, match="the broker's address") as refusal:
        BrokerAccess(url=url)
    assert "SECRET" not in str(refusal.value)


@pytest.mark.parametrize("field", ["nkey_file", "credentials_file", "ca_file", "certificate_file"])
@pytest.mark.parametrize("value", ["SECRET", "SECRET\x00", "SECRET" * 1000])
def test_a_file_that_is_missing_is_named_by_its_option_only(field, value):
    """What is no file may be the secret itself."""
    with pytest.raises(ConfigurationError, match=f"{field} should name a file") as refusal:
        BrokerAccess(url="nats://broker", **{field: value})
    assert "SECRET" not in str(refusal.value)


def test_one_way_to_sign_in_is_enough(tmp_path):
    seed = tmp_path / "app.nk"
    seed.write_text("SU...")
    with pytest.raises(ConfigurationError, match="there are several: token, the address"):
        BrokerAccess(url="nats://SECRET@broker", token="SECRET")
    with pytest.raises(ConfigurationError, match="there are several: user, nkey_file"):
        BrokerAccess(url="nats://broker", user="ann", password="SECRET", nkey_file=str(seed))


@pytest.mark.parametrize("half", [{"user": "ann"}, {"password": "SECRET"}])
def test_user_and_password_go_together(half):
    with pytest.raises(ConfigurationError, match="user and password go together"):
        BrokerAccess(url="nats://broker", **half)


@pytest.mark.parametrize(("url", "is_encrypted"), [("nats://a", False), ("tls://a", True), ("nats://a,tls://b", True)])
def test_an_address_says_whether_to_encrypt(url, is_encrypted):
    access = BrokerAccess(url=url)
    assert access.is_encrypted is is_encrypted
    assert isinstance(access.options().get("tls"), ssl.SSLContext) is is_encrypted


@pytest.mark.parametrize("prefix", ["", ".", "a.", "a b", "_INBOX.>", "*"])
def test_an_inbox_prefix_that_is_no_subject_is_refused(prefix):
    with pytest.raises(ConfigurationError, match="inbox_prefix is"):
        BrokerAccess(url="nats://broker", inbox_prefix=prefix)


def test_all_of_it_may_come_from_the_environment(monkeypatch, tmp_path):
    file = tmp_path / "file"
    file.write_text("text")
    names = {
        "nkey_file": "RAGSPAN_NATS_NKEY_FILE",
        "ca_file": "RAGSPAN_NATS_CA_FILE",
        "certificate_file": "RAGSPAN_NATS_CERTIFICATE_FILE",
        "key_file": "RAGSPAN_NATS_KEY_FILE",
    }
    for name in names.values():
        monkeypatch.setenv(name, str(file))
    monkeypatch.setenv("RAGSPAN_NATS_INBOX_PREFIX", "_INBOX_app")
    access = BrokerAccess.from_environment("nats://broker")
    assert access.inbox_prefix == "_INBOX_app"
    assert {field: getattr(access, field) for field in names} == dict.fromkeys(names, str(file))


def test_no_secret_is_in_its_text(tmp_path):
    access = BrokerAccess(url="nats://ann:SECRET@broker")
    assert "SECRET" not in f"{access!r} {access} {access.place}"
    for given in ({"user": "ann", "password": "SECRET"}, {"token": "SECRET"}):
        assert "SECRET" not in repr(BrokerAccess(url="nats://broker", **given))
    hidden = {field.name for field in dataclasses.fields(BrokerAccess) if not field.repr}
    assert hidden == {"url", "password", "token"}
