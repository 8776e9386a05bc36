"""What a dedicated tenant's credentials may do in the bucket, as an S3 policy document: its own part, and no more.

Actions are those that `shared.storage.s3` and `shared.models` use. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from infra.tenants.objects import Object
from infra.tenants.plan import model_bucket, store_url
from infra.tenants.spec import Place
from shared.errors import ConfigError

WRITING = ["s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"]
MODELS = ("sha256", "index", "channels", "derived")
"""What all tenants share of the model bucket (shared/models/bucket.py); the rest of it is one tenant's each."""


def document(objects: Sequence[Object], place: Place) -> Object:
    """The policy for the Secret `wakeswap-store` of a dedicated tenant's plan. Raises ConfigError when the plan's store
    is no bucket.
    """
    bucket, prefix = _split(store_url(objects))
    statements = _below("Own", bucket, [prefix], WRITING)
    if models := model_bucket(objects):
        bucket, prefix = _split(models)
        base = f"{prefix}/models" if prefix else "models"
        prefixes = [*(f"{base}/{part}" for part in MODELS), f"{base}/tenants/{place.name}"]
        statements += _below("Models", bucket, prefixes, ["s3:GetObject"])
    return {"Version": "2012-10-17", "Statement": [*statements]}


def _below(name: str, bucket: str, prefixes: list[str], actions: list[str]) -> list[Object]:
    """Everything below the prefixes. Without the right to list them S3 answers 403 for an object that is not there."""
    arn, below = f"arn:aws:s3:::{bucket}", [f"{prefix}/*" for prefix in prefixes]
    return [
        {"Sid": name, "Effect": "Allow", "Action": [*actions], "Resource": [f"{arn}/{part}" for part in below]},
        {
            "Sid": f"{name}Listed",
            "Effect": "Allow",
            "Action": "s3:ListBucket",
            "Resource": arn,
            "Condition": {"StringLike": {"s3:prefix": [*below]}},
        },
    ]


def _split(url: str) -> tuple[str, str]:
    if not url.startswith("s3://"):
        raise ConfigError(f"{url!r} is no bucket.", context={"field": "--overlay"})
    bucket, _, prefix = url.removeprefix("s3://").partition("/")
    return bucket, prefix.strip("/")
