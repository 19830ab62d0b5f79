"""Signing in and encryption, with a broker that insists on them."""

from __future__ import annotations

import contextlib
import gc
import logging
import socket
import threading

import pytest
import trustme
from servers.broker import HOST
from submitted import a_record, stored_ids, submit
from waiting import PATIENCE, until

from ragspan_nats import BrokerAccess

PASSWORD = 'authorization { user: "ann", password: "SECRET" }'


class Keys:
    """A certificate authority, a certificate for this machine, one for a client, and where they lie."""

    def __init__(self, folder):
        authority = trustme.CA()
        self.ca = folder / "ca.pem"
        self.server = folder / "server.pem"
        self.client = folder / "client.pem"
        self.client_key = folder / "client-key.pem"
        authority.cert_pem.write_to_path(self.ca)
        authority.issue_cert(HOST, "localhost").private_key_and_cert_chain_pem.write_to_path(self.server)
        client = authority.issue_cert("app@example.org")
        client.private_key_pem.write_to_path(self.client_key)
        client.cert_chain_pems[0].write_to_path(self.client)

    def tls(self, *, verify=False):
        client = f'ca_file: "{self.ca}"\n verify: true' if verify else ""
        return f'tls {{ cert_file: "{self.server}"\n key_file: "{self.server}"\n {client} }}'


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    return Keys(tmp_path_factory.mktemp("keys"))


def url_of(broker, userinfo="", *, scheme="nats"):
    return f"{scheme}://{userinfo and userinfo + '@'}{HOST}:{broker.port}"


def goes_through(sink, broker):
    submit(sink, a_record())
    assert stored_ids(broker) == ["r-1"]


@pytest.mark.parametrize("scheme", ["nats", "tls"])
def test_a_broker_with_tls_is_spoken_to_encrypted(make_broker, make_sink, keys, scheme):
    broker = make_broker(config=keys.tls(), view={"ca_file": str(keys.ca)})
    broker.start()
    access = BrokerAccess(url=url_of(broker, scheme=scheme), ca_file=str(keys.ca))
    goes_through(make_sink(access), broker)


def test_a_broker_that_asks_for_a_certificate_gets_one(make_broker, make_sink, keys, tmp_path):
    both = tmp_path / "both.pem"
    both.write_bytes(keys.client_key.read_bytes() + keys.client.read_bytes())
    mine = {"certificate_file": str(both)}
    broker = make_broker(config=keys.tls(verify=True), view={"ca_file": str(keys.ca), **mine})
    broker.start()
    access = BrokerAccess(url=url_of(broker, scheme="tls"), ca_file=str(keys.ca), **mine)
    goes_through(make_sink(access), broker)


@pytest.mark.parametrize("missing", ["authority", "certificate"])
def test_without_the_right_certificates_nothing_is_published(make_broker, make_sink, keys, caplog, missing):
    broker = make_broker(config=keys.tls(verify=missing == "certificate"), view={"ca_file": str(keys.ca)})
    broker.start()
    access = BrokerAccess(
        url=url_of(broker, "ann:SECRET", scheme="tls"), ca_file=None if missing == "authority" else str(keys.ca)
    )
    sink = make_sink(access, retry_timeout=1.0)
    submit(sink, a_record())
    assert sink.stats().dropped == {"broker_unavailable": 1}
    until(lambda: f"the broker at {HOST}:{broker.port} cannot be used" in caplog.text, what="the line that says why")
    assert "SECRET" not in caplog.text


class Eavesdropper:
    """Greets like a NATS server that knows no encryption, and writes down what it is told."""

    def __init__(self):
        self.heard = b""
        self._listening = socket.create_server((HOST, 0))
        self.port = self._listening.getsockname()[1]
        self._closing = False
        self._thread = threading.Thread(target=self._listen)
        self._thread.start()

    def _listen(self):
        while not self._closing:
            with contextlib.suppress(OSError), self._listening.accept()[0] as connection:
                connection.settimeout(PATIENCE)
                connection.sendall(
                    b'INFO {"server_id":"x","version":"2.9.10","headers":true,"max_payload":1048576,"auth_required":true}\r\n'
                )
                while heard := connection.recv(4096):
                    self.heard += heard
                    if b"PING" in heard:
                        connection.sendall(b"PONG\r\n")

    def close(self):
        self._closing = True
        with contextlib.suppress(OSError):
            socket.create_connection((HOST, self.port), timeout=1).close()
        self._listening.close()
        self._thread.join()


@pytest.mark.parametrize("asks", ["scheme", "authority"])
def test_no_password_is_sent_in_the_clear_where_encryption_was_asked_for(make_sink, keys, asks):
    eavesdropper = Eavesdropper()
    try:
        url = f"{'tls' if asks == 'scheme' else 'nats'}://ann:SECRET@{HOST}:{eavesdropper.port}"
        access = BrokerAccess(url=url, ca_file=None if asks == "scheme" else str(keys.ca))
        sink = make_sink(access)
        sink.submit(a_record())
        until(lambda: eavesdropper.heard, what="the client to say something")
        assert not sink.flush(0.5)
        sink.shutdown(1)
    finally:
        eavesdropper.close()

    assert b"SECRET" not in eavesdropper.heard
    assert b"CONNECT" not in eavesdropper.heard


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:unclosed <StreamWriter:ResourceWarning")  # of nats-py, by the refused connection
def test_a_password_that_is_wrong_for_a_while_costs_nothing(make_broker, make_sink, caplog):
    """nats-py closes its client for good where a server refuses it that let it in before."""
    caplog.set_level(logging.DEBUG)
    broker = make_broker(config=PASSWORD, view="ann:SECRET")
    broker.start()
    sink = make_sink(url_of(broker, "ann:SECRET"))
    goes_through(sink, broker)

    broker.config = 'authorization { user: "ann", password: "other" }'
    broker.restart()
    sink.submit(a_record("r-2"))
    until(lambda: "authorization" in caplog.text.lower(), what="a line about it")
    assert not sink.flush(3)
    broker.config = PASSWORD
    broker.restart()

    assert sink.flush(PATIENCE)
    assert stored_ids(broker) == ["r-1", "r-2"]
    assert "SECRET" not in caplog.text
    gc.collect()


def test_the_next_server_of_a_cluster_is_tried_where_the_first_is_away(make_broker, make_sink):
    away, broker = make_broker(), make_broker()
    broker.start()
    goes_through(make_sink(f"{away.url},{broker.url}"), broker)
