"""An operator of brokers who signs for accounts, and an account that signs for users, as `nsc` sets them up."""

from __future__ import annotations

import base64
import json
import os
import textwrap
import time

import nkeys

_LIMITS = "subs data payload imports exports conn leaf mem_storage disk_storage streams consumer"
_NO_LIMITS = dict.fromkeys(_LIMITS.split(), -1)


class Operator:
    """One with an account for JetStream, and the account that brokers use among themselves.

    Attributes:
        config: lines of the broker's configuration file.
    """

    def __init__(self):
        operator = _new_pair(nkeys.PREFIX_BYTE_OPERATOR)
        system = _new_pair(nkeys.PREFIX_BYTE_ACCOUNT)
        self._account = _new_pair(nkeys.PREFIX_BYTE_ACCOUNT)
        preload = "\n".join(
            f"{_name(pair)}: {_signed(operator, pair, type='account', limits={**_NO_LIMITS, **storage, 'wildcards': True})}"
            for pair, storage in ((system, {"mem_storage": 0, "disk_storage": 0}), (self._account, {}))
        )
        self.config = (
            f"operator: {_signed(operator, operator, type='operator')}\n"
            f"system_account: {_name(system)}\n"
            f"resolver: MEMORY\nresolver_preload: {{\n{preload}\n}}"
        )

    def credentials(self):
        """A file for a new user of the account."""
        user = _new_pair(nkeys.PREFIX_BYTE_USER)
        token = _signed(self._account, user, type="user", subs=-1, data=-1, payload=-1)
        return textwrap.dedent(
            f"""\
            -----BEGIN NATS USER JWT-----
            {token}
            ------END NATS USER JWT------

            -----BEGIN USER NKEY SEED-----
            {bytes(user.seed).decode()}
            ------END USER NKEY SEED------
            """
        )


def _new_pair(prefix):
    return nkeys.from_seed(nkeys.encode_seed(os.urandom(32), prefix))


def _name(pair):
    return pair.public_key.decode()


def _signed(signer, subject, **nats):
    claims = {
        "iat": int(time.time()),
        "iss": _name(signer),
        "jti": "test",
        "name": "test",
        "nats": {**nats, "version": 2},
        "sub": _name(subject),
    }
    text = b".".join(map(_encoded, ({"typ": "JWT", "alg": "ed25519-nkey"}, claims)))
    return (text + b"." + _base64(signer.sign(text))).decode()


def _encoded(part):
    return _base64(json.dumps(part).encode())


def _base64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=")
