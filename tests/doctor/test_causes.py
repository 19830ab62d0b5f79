import http.client
import socket
import ssl

import pytest

from ragspan.doctor.causes import trouble_with


def chained(outer, inner):
    try:
        try:
            raise inner
        except BaseException:
            raise outer from None
    except BaseException as error:
        return error


@pytest.mark.parametrize(
    ("error", "trouble"),
    [
        (ssl.SSLCertVerificationError("x"), "certificate"),
        (ssl.SSLError("x"), "tls"),
        (socket.gaierror("x"), "name"),
        (ConnectionRefusedError("x"), "refused"),
        (TimeoutError("x"), "timeout"),
        (ConnectionResetError("x"), "closed"),
        (http.client.BadStatusLine("x"), "protocol"),
        (OSError("no route"), "unreachable"),
        (ValueError("x"), None),
    ],
)
def test_each_kind_is_known_by_itself_and_behind_others(error, trouble):
    assert trouble_with(error) == trouble
    assert trouble_with(chained(RuntimeError("wrapped"), error)) == trouble
    assert trouble_with(RuntimeError("wrapped", error)) == trouble


def test_the_more_telling_cause_wins():
    assert trouble_with(chained(OSError("all attempts failed"), ConnectionRefusedError())) == "refused"


def test_causes_in_a_circle_come_to_an_end():
    error = RuntimeError()
    error.__context__ = ValueError()
    error.__context__.__context__ = error

    assert trouble_with(error) is None
