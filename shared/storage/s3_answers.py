"""What S3's answers mean: an error as one of ours, an answer's fields as an ObjectInfo. Sends nothing."""

from __future__ import annotations

import re
from dataclasses import replace
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from types import MappingProxyType
from typing import TYPE_CHECKING

from shared.errors import (
    ObjectNotFoundError,
    PreconditionFailedError,
    StorageError,
    StoreAccessDeniedError,
    StoreUnavailableError,
    WakeswapError,
)
from shared.storage.protocol import ObjectInfo

if TYPE_CHECKING:
    from botocore.exceptions import ClientError
    from mypy_boto3_s3.type_defs import GetObjectOutputTypeDef, HeadObjectOutputTypeDef, ResponseMetadataTypeDef

BINARY = "application/octet-stream"
NONCE = "wakeswap-write"
"""Metadata that tells our own write from another's; not shown."""

_CONTENT_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+)")


class ExpiredCredentialsError(StoreAccessDeniedError):
    """Worth one more try with credentials loaded anew."""


class BeyondEndError(StorageError):
    """The asked range begins behind the object's last byte."""


def translated(key: str, error: ClientError) -> WakeswapError:
    """S3's answer as one of our errors; only StoreUnavailableError is worth another try."""
    code = error.response["Error"]["Code"]
    status = error.response["ResponseMetadata"]["HTTPStatusCode"]
    if status == HTTPStatus.NOT_FOUND:
        return (
            StorageError("The bucket does not exist.")
            if code == "NoSuchBucket"
            else ObjectNotFoundError(f"No object {key}.")
        )
    if status == HTTPStatus.PRECONDITION_FAILED:
        return PreconditionFailedError(f"{key} was changed by another writer.")
    if status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
        return BeyondEndError(f"{key} ends before that.")
    if code in ("ExpiredToken", "ExpiredTokenException"):
        return ExpiredCredentialsError("The store refuses access: the credentials have expired.")
    if code == "RequestTimeTooSkewed":
        return StoreAccessDeniedError("The store refuses the request because this machine's clock is wrong.")
    if status in (HTTPStatus.MOVED_PERMANENTLY, HTTPStatus.TEMPORARY_REDIRECT):
        region = error.response["ResponseMetadata"].get("HTTPHeaders", {}).get("x-amz-bucket-region", "")
        return StorageError(f"The bucket lies in another region{region and f', {region}'}; set AWS_REGION to it.")
    if status in (HTTPStatus.FORBIDDEN, HTTPStatus.UNAUTHORIZED) or code == "InvalidToken":
        return StoreAccessDeniedError(f"The store refuses access ({code}).")
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in (
        HTTPStatus.CONFLICT,
        HTTPStatus.TOO_MANY_REQUESTS,
        HTTPStatus.REQUEST_TIMEOUT,
    ):
        return StoreUnavailableError(f"The store is not available ({code}).")
    return StorageError(f"The store refuses the request ({code}).")


def info(key: str, answer: GetObjectOutputTypeDef | HeadObjectOutputTypeDef) -> ObjectInfo:
    metadata = {name: value for name, value in answer["Metadata"].items() if name != NONCE}
    return ObjectInfo(
        key,
        answer["ContentLength"],
        answer["ETag"],
        answer["LastModified"].timestamp(),
        answer.get("ContentType", BINARY),
        MappingProxyType(metadata),
    )


def date(answer: ResponseMetadataTypeDef) -> float:
    return parsedate_to_datetime(answer["HTTPHeaders"]["date"]).timestamp()


def part_info(key: str, start: int, etag: str, answer: GetObjectOutputTypeDef) -> ObjectInfo:
    """Of the whole object, from the answer to a ranged GET. PreconditionFailedError for another version than `etag`.

    A server that ignores the range is refused, rather than its bytes put in the wrong place.
    """
    whole = info(key, answer)
    if etag not in ("", whole.etag):
        raise PreconditionFailedError(f"{key} was changed by another writer.")
    found = _CONTENT_RANGE.fullmatch(answer.get("ContentRange", ""))
    if found is None or int(found[1]) != start:
        raise StorageError("The store did not send the range it was asked for.")
    return replace(whole, size=int(found[2]))
