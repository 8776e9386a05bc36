"""Public keys that tokens are checked with, read from a key set (RFC 7517) or from PEM.

What a key is for is told by its own type and never by a token: an RSA key checks RS256, one on the curve P-256 ES256,
one on Ed25519 EdDSA. Everything else in a set is left out. Imports PyJWT and cryptography when it reads keys.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shared import records
from shared.errors import JsonValue

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

PEM = re.compile(r"-----BEGIN PUBLIC KEY-----[A-Za-z0-9+/=\s]+-----END PUBLIC KEY-----")
SMALLEST_RSA = 2048
"""Bits (NIST SP 800-131A)."""


@dataclass(frozen=True)
class Key:
    id: str
    """Empty: a key without one, which any token may mean."""
    algorithm: str
    material: RSAPublicKey | EllipticCurvePublicKey | Ed25519PublicKey | bytes


def matching(keys: Sequence[Key], key_id: str) -> Sequence[Key]:
    return [key for key in keys if not key_id or not key.id or key.id == key_id]


def plausible(text: str) -> bool:
    """Whether this can be keys at all, told without the libraries that read them: a start looks no closer."""
    if text.lstrip().startswith("-----"):
        return PEM.search(text) is not None
    try:
        document = records.loads(text)
    except ValueError:
        return False
    return isinstance(document, dict) and isinstance(document.get("keys"), list)


def read(text: str) -> Sequence[Key]:
    """Of the setting: a key set, or PEM blocks one after another. Raises ValueError."""
    if not text.lstrip().startswith("-----"):
        return read_set(text.encode())
    blocks = PEM.findall(text)
    keys = [key for block in blocks if (key := _from_pem(block)) is not None]
    if len(keys) != text.count("-----BEGIN"):
        raise ValueError("every PEM block must be a public key of a kind that tokens are signed with")
    return keys


def read_set(data: bytes) -> Sequence[Key]:
    """The keys of a set that can check a token. Raises ValueError when there is none."""
    document = records.loads(data)
    entries = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        raise ValueError("not a key set")  # noqa: TRY004 - what the text says is wrong, no type of ours
    keys = [key for entry in entries if (key := _from_jwk(entry)) is not None]
    if not keys:
        raise ValueError("no key of the set can check a token")
    return keys


def _from_jwk(entry: JsonValue) -> Key | None:
    """None for what is no signing key of ours: other types and curves, secrets, and keys for encryption."""
    import jwt

    if not isinstance(entry, dict) or "d" in entry or entry.get("use", "sig") != "sig":
        return None
    kind, curve = entry.get("kty"), entry.get("crv")
    if not isinstance(kind, str) or not isinstance(curve, str | None):
        return None
    key_id, algorithm = entry.get("kid", ""), _ALGORITHMS.get((kind, curve))
    if algorithm is None or entry.get("alg", algorithm) != algorithm or not isinstance(key_id, str):
        return None
    try:
        return _sized(key_id, jwt.PyJWK(entry, algorithm).key)
    except jwt.PyJWTError:
        return None


def _from_pem(block: str) -> Key | None:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        return _sized("", load_pem_public_key(block.encode()))
    except UnsupportedAlgorithm:
        return None


_ALGORITHMS: dict[tuple[JsonValue, JsonValue], str] = {
    ("RSA", None): "RS256",
    ("EC", "P-256"): "ES256",
    ("OKP", "Ed25519"): "EdDSA",
}


def _sized(key_id: str, key: object) -> Key | None:
    """The key with the one algorithm that its type and size allow; None: there is none."""
    from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

    if isinstance(key, RSAPublicKey) and key.key_size >= SMALLEST_RSA:
        return Key(key_id, "RS256", key)
    if isinstance(key, EllipticCurvePublicKey) and isinstance(key.curve, SECP256R1):
        return Key(key_id, "ES256", key)
    if isinstance(key, Ed25519PublicKey):
        return Key(key_id, "EdDSA", key)
    return None
