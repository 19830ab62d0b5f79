from __future__ import annotations

import socket
import ssl

import pytest

from ragspan.addresses import cause_of, secrets_in_url, shown_url


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://user:pw@host:1/path?query#fragment", "https://host:1/path"),
        ("http://localhost:4318", "http://localhost:4318"),
        ("http://host/t0ken/v1/traces", "http://host/…/v1/traces"),
        ("user:pw@host:4317", "host:4317"),
        ("http://[::1", "[not a URL]"),
    ],
)
def test_an_address_is_shown_without_what_may_be_secret(url, shown):
    assert shown_url(url) == shown


def test_all_that_is_not_shown_is_a_secret_in_each_of_its_spellings():
    found = set(secrets_in_url("http://bob:p%40ss@host/v1/t0ken/chat?key=qu%2Fery&n=1#frag"))

    assert found >= {"p%40ss", "p@ss", "Ym9iOnBAc3M=", "t0ken", "qu/ery", "key=qu%2Fery&n=1", "frag"}
    assert not {"v1", "chat", "host", "bob"} & found, "words that stand in other texts, too"


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (ssl.SSLCertVerificationError(1, "[SSL: CERTIFICATE_VERIFY_FAILED] x"), "its certificate is not trusted"),
        (socket.gaierror(-2, "Name or service not known"), "the host name cannot be resolved"),
        (ConnectionRefusedError("x"), "no server listens there: connection refused"),
        (ssl.SSLError(1, "x"), "no TLS connection can be made"),
        (TimeoutError("x"), "it does not answer in time"),
        (ConnectionResetError("x"), "it closes the connection without an answer"),
        (OSError("x"), "the connection fails"),
        (RuntimeError("BadStatusLine"), "what answers does not speak HTTP"),
        (RuntimeError("MissingSchema"), "it is not an address that begins with http:// or https://"),
        (RuntimeError("SOCKS"), "the environment names a SOCKS proxy, which needs a package: pip install pysocks"),
        (ValueError("x"), None),
    ],
)
def test_the_cause_of_an_error_is_known_also_where_libraries_have_wrapped_it(error, cause):
    outer = RuntimeError("wrapped")
    outer.__context__ = error

    assert [cause_of(error), cause_of(outer), cause_of(RuntimeError("wrapped", error))] == [cause] * 3
