"""Settings are read once, by name, and a wrong one stops the process with its name."""

from __future__ import annotations

import ast
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from shared import settings
from shared.errors import ConfigError
from shared.settings import Settings


def test_an_empty_environment_gives_the_documented_defaults() -> None:
    assert Settings.from_environment({}) == Settings()
    assert Settings().serving.lease_seconds == 15
    assert Settings().models.detector == "centerface"


def test_every_variable_reaches_its_field() -> None:
    given = {
        "WAKESWAP_STORE_URL": "s3://bucket/pre/fix",
        "WAKESWAP_MODEL_CACHE": "/cache",
        "WAKESWAP_MODEL_BUCKET": "file:/models",
        "WAKESWAP_MODEL_TAG": "stable",
        "WAKESWAP_CONCURRENCY": "4",
        "WAKESWAP_TIMEOUT_SECONDS": "60",
        "WAKESWAP_DEVICE": "gpu",
        "WAKESWAP_TENSORRT": "true",
        "WAKESWAP_BATCH_ELEMENTS": "7000",
        "WAKESWAP_LOG_LEVEL": "DEBUG",
        "WAKESWAP_TENANTS": '{"demo": {}}',
        "PORT": "80",
        "K_SINK": "http://broker-ingress.knative-eventing.svc/ns/default",
    }
    read = Settings.from_environment(given)
    assert read.store.url == "s3://bucket/pre/fix"
    assert read.models.cache == Path("/cache")
    assert (read.models.bucket, read.models.tag) == ("file:/models", "stable")
    assert (read.models.device, read.models.tensorrt, read.models.batch_elements) == ("gpu", True, 7000)
    assert (read.serving.concurrency, read.serving.timeout_seconds, read.serving.port) == (4, 60, 80)
    assert read.serving.sink.startswith("http://broker-ingress")
    assert read.serving.log_level == "DEBUG"
    assert read.tenants.tenants == '{"demo": {}}'


def test_empty_variables_and_variables_of_others_do_not_matter() -> None:
    assert (
        Settings.from_environment({"WAKESWAP_MODEL_BUCKET": "", "PORT": "", "HOME": "/x", "wakeswap_x": "1"})
        == Settings()
    )


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("WAKESWAP_STORE_URL", "/tmp/objects"),
        ("WAKESWAP_STORE_URL", "s3://Bucket"),
        ("WAKESWAP_STORE_URL", "file:"),
        ("WAKESWAP_MODEL_BUCKET", "http://models"),
        ("WAKESWAP_DEVICE", "cuda"),
        ("WAKESWAP_TENSORRT", "1"),
        ("WAKESWAP_BATCH_ELEMENTS", "-1"),
        ("WAKESWAP_CONCURRENCY", "0"),
        ("WAKESWAP_CONCURRENCY", "1.5"),
        ("WAKESWAP_CONCURRENCY", "٣"),
        ("WAKESWAP_TIMEOUT_SECONDS", "-1"),
        ("WAKESWAP_LEASE_SECONDS", "soon"),
        ("WAKESWAP_MAX_BODY_BYTES", "50MB"),
        ("WAKESWAP_LOG_LEVEL", "debug"),
        ("PORT", "65536"),
        ("K_SINK", "broker"),
        ("WAKESWAP_NOTIFICATION_TOKEN", "fifteen-letters"),
        ("WAKESWAP_NOTIFICATION_TOKEN", "two words and more"),
        ("WAKESWAP_JWT_JWKS_URL", "http://issuer.example/keys"),
        ("WAKESWAP_JWT_JWKS_URL", "http://127.0.0.1.example/keys"),
        ("WAKESWAP_JWT_JWKS_URL", "file:///etc/passwd"),
        ("WAKESWAP_JWT_SECRET", "only-31-characters-are-too-few."),
        ("WAKESWAP_RATE_STORE", "memcached://cache"),
        ("WAKESWAP_RATE_PER_KEY", "60/minute"),
        ("WAKESWAP_TRUSTED_PROXIES", "-1"),
    ],
)
def test_a_value_that_cannot_work_is_refused_by_name(variable: str, value: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Settings.from_environment({variable: value})
    assert caught.value.context["variable"] == variable
    assert caught.value.detail.startswith(variable)


def test_a_misspelt_variable_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(ConfigError, match=r"WAKESWAP_CONCURENCY .* nearest is WAKESWAP_CONCURRENCY"):
        Settings.from_environment({"WAKESWAP_CONCURENCY": "2"})


def test_secrets_are_known_to_the_redactor_and_never_shown() -> None:
    read = Settings.from_environment(
        {
            "WAKESWAP_API_KEYS": "demo=key-one, other=key-two",
            "WAKESWAP_WEBHOOK_SECRETS": "demo=whsec_c2VjcmV0",
            "WAKESWAP_NOTIFICATION_TOKEN": "token-of-the-door",
            "WAKESWAP_EVENT_KEYS": "k2=event-key-two,k1=event-key-one",
            "AWS_SECRET_ACCESS_KEY": "aws-secret",
            "AWS_SESSION_TOKEN": "aws-session",
            "WAKESWAP_JWT_SECRET": "shared-with-the-issuer-0123456789",
            "WAKESWAP_RATE_STORE": "redis://:of-redis@cache:6379/1",
        }
    )
    secrets = {"key-one", "key-two", "whsec_c2VjcmV0", "token-of-the-door", "aws-secret", "aws-session"}
    secrets |= {"shared-with-the-issuer-0123456789", "of-redis"}
    secrets |= {"event-key-one", "event-key-two"}
    assert set(read.secrets()) == secrets
    assert not any(secret in repr(read) for secret in secrets)


def test_every_field_says_what_it_means() -> None:
    for group in settings.GROUPS:
        tree = ast.parse(Path(str(sys.modules[group.__module__].__file__)).read_text())
        item = next(item for item in tree.body if isinstance(item, ast.ClassDef) and item.name == group.__name__)
        body = [entry for entry in item.body if not isinstance(entry, ast.FunctionDef)]
        documented = [isinstance(entry, ast.Expr) for entry in body]
        assert sum(documented) == len(fields(group)) + 1, group.__name__
