"""Keys made for one run, the tokens that they sign, and the key set that a real server gives out."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from shared.edge_settings import JwtSettings
from shared.tenancy.directory import Directory, load
from shared.tenancy.tokens import Tokens, open_tokens

ISSUER, AUDIENCE = "https://issuer.example/", "wakeswap"
ALGORITHMS = ("RS256", "ES256", "EdDSA")
_JWK: Mapping[str, Any] = {"RS256": RSAAlgorithm, "ES256": ECAlgorithm, "EdDSA": OKPAlgorithm}


@cache
def private(algorithm: str, name: str = "one") -> Any:
    """One key of a kind; each name has another."""
    if algorithm == "ES256":
        return ec.generate_private_key(ec.SECP256R1())
    if algorithm == "EdDSA":
        return ed25519.Ed25519PrivateKey.generate()
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def pem(algorithm: str, name: str = "one") -> str:
    data: bytes = private(algorithm, name).public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return data.decode()


def jwk(algorithm: str, name: str = "one", **more: object) -> dict[str, object]:
    entry: dict[str, object] = _JWK[algorithm].to_jwk(private(algorithm, name).public_key(), as_dict=True)
    return {**entry, "kid": name, **more}


def key_set(*entries: Mapping[str, object]) -> str:
    return json.dumps({"keys": entries})


def claims(**more: object) -> dict[str, object]:
    """Right claims; `more` replaces, and None leaves one out."""
    now = int(time.time())
    right = {"iss": ISSUER, "aud": AUDIENCE, "exp": now + 600, "sub": "u-1", "tenant": "demo"}
    return {name: value for name, value in {**right, **more}.items() if value is not None}


def token(algorithm: str = "ES256", name: str = "one", *, kid: str | None = "one", **more: object) -> str:
    """Signed as it stands, also where PyJWT's own encoder would refuse to."""
    headers = {} if kid is None else {"kid": kid}
    body = json.dumps(claims(**more)).encode()
    return jwt.PyJWS().encode(body, private(algorithm, name), algorithm, headers=headers)


def tokens(**settings: str) -> Tokens:
    made = open_tokens(JwtSettings(issuer=ISSUER, audience=AUDIENCE, **settings))  # type: ignore[arg-type]
    assert made is not None
    return made


def directory() -> Directory:
    return load('{"demo": {}, "t-acme": {}}')


@dataclass
class Issuer:
    """A real server whose key set and failure can be set; counts the readings."""

    document: str = ""
    status: int = 200
    location: str = ""
    readings: int = 0

    def __post_init__(self) -> None:
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                issuer.readings += 1
                body = issuer.document.encode()
                self.send_response(issuer.status)
                if issuer.location:
                    self.send_header("Location", issuer.location)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/keys"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
