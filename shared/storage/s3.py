"""The object store on S3 or anything that speaks it with conditional writes. The only importer of boto3.

boto3's own retries are off: tenacity retries what may pass (throttling, 5xx, dropped connections), never what will
not (403, 404, 412), and the error tree tells them apart. Endpoint, region and credentials are boto3's own settings
(AWS_ENDPOINT_URL_S3, AWS_REGION, AWS_ACCESS_KEY_ID, ...).
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, TypedDict, TypeVar

import boto3
from boto3.exceptions import S3UploadFailedError
from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionError,
    HTTPClientError,
    IncompleteReadError,
    ReadTimeoutError,
    ResponseStreamingError,
)
from tenacity import retry, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from shared.errors import (
    InvalidCursorError,
    ObjectNotFoundError,
    PayloadTooLargeError,
    PreconditionFailedError,
    StorageError,
    StoreUnavailableError,
)
from shared.storage import keys, s3_answers
from shared.storage.protocol import ObjectInfo, Page, Write
from shared.storage.s3_answers import BINARY, ExpiredCredentialsError

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import ListObjectsV2OutputTypeDef

T = TypeVar("T")
NO_METADATA: Mapping[str, str] = MappingProxyType({})
_ATTEMPTS = 4
FIRST_WAIT = 0.2
"""Seconds at most before the second try; doubles up to 5."""
_PART = 16 * 1024 * 1024
"""Bytes a multipart part; S3 allows 5 MiB to 5 GiB."""
_PIECE = 1 << 18
"""Bytes read at once: measured on 500 MB, 0.3 s of system time where pieces of 1 MiB, in fresh pages, cost 1.1 s."""
_PASSING = (ConnectionError, HTTPClientError, ReadTimeoutError, IncompleteReadError, ResponseStreamingError)
_CONFIG = Config(
    signature_version="s3v4",
    s3={"addressing_style": "path"},
    retries={"total_max_attempts": 1},
    connect_timeout=5,
    read_timeout=60,
    max_pool_connections=32,
    # checksums only where the operation demands one: some S3 servers send a whole object's CRC with a part of it
    request_checksum_calculation="when_required",
    response_checksum_validation="when_required",
)
# awscrt's transfer client ignores a custom endpoint (boto3 issue 4839)
_TRANSFER = TransferConfig(
    multipart_threshold=_PART, multipart_chunksize=_PART, max_concurrency=4, preferred_transfer_client="classic"
)
_client_lock = threading.Lock()


class _IfMatch(TypedDict, total=False):
    IfMatch: str


class _Continuation(TypedDict, total=False):
    ContinuationToken: str


class S3Store:
    """ObjectStore on one bucket, or on the part of it below a prefix, which no key then shows."""

    def __init__(self, bucket: str, prefix: str = "") -> None:
        """`prefix`: empty, or ends in a slash."""
        self.bucket = bucket
        self.prefix = prefix

    @cached_property
    def _client(self) -> S3Client:
        with _client_lock:  # a session is not safe to build clients from in several threads
            return boto3.Session().client("s3", config=_CONFIG)

    def get(self, key: str, *, limit: int | None = None) -> tuple[bytes, ObjectInfo]:
        name = self._name(key)

        def read() -> tuple[bytes, ObjectInfo]:
            answer = self._client.get_object(Bucket=self.bucket, Key=name)
            with answer["Body"] as body:
                if limit is not None and answer["ContentLength"] > limit:
                    raise PayloadTooLargeError(f"The object is over {limit} bytes.")
                data = body.read()
            if len(data) != answer["ContentLength"]:
                raise StoreUnavailableError("The object came cut off.")
            return data, s3_answers.info(key, answer)

        return self._try(key, read)

    def head(self, key: str) -> ObjectInfo:
        name = self._name(key)
        return self._try(key, lambda: s3_answers.info(key, self._client.head_object(Bucket=self.bucket, Key=name)))

    def put(
        self, key: str, data: bytes, *, content_type: str = BINARY, metadata: Mapping[str, str] = NO_METADATA
    ) -> ObjectInfo:
        return self._write(key, data, content_type, metadata, {})

    def create(
        self, key: str, data: bytes, *, content_type: str = BINARY, metadata: Mapping[str, str] = NO_METADATA
    ) -> ObjectInfo:
        return self._write(key, data, content_type, metadata, {"IfNoneMatch": "*"})

    def replace(
        self, key: str, data: bytes, etag: str, *, content_type: str = BINARY, metadata: Mapping[str, str] = NO_METADATA
    ) -> ObjectInfo:
        try:
            return self._write(key, data, content_type, metadata, {"IfMatch": etag})
        except ObjectNotFoundError:  # S3 answers 404 to If-Match on a missing object
            raise PreconditionFailedError(f"{key} does not exist.") from None

    def delete(self, key: str) -> None:
        name = self._name(key)
        self._try(key, lambda: self._client.delete_object(Bucket=self.bucket, Key=name))

    def list(self, prefix: str, *, cursor: str = "", limit: int = 1000, delimiter: str = "") -> Page:
        more: _Continuation = {"ContinuationToken": cursor} if cursor else {}

        def read() -> ListObjectsV2OutputTypeDef:
            try:
                return self._client.list_objects_v2(
                    Bucket=self.bucket, Prefix=self.prefix + prefix, MaxKeys=limit, Delimiter=delimiter, **more
                )
            except ClientError as error:
                if cursor and error.response["Error"]["Code"] == "InvalidArgument":
                    raise InvalidCursorError from error
                raise

        answer, hidden = self._try(prefix, read), len(self.prefix)
        objects = tuple(
            ObjectInfo(item["Key"][hidden:], item["Size"], item["ETag"], item["LastModified"].timestamp())
            for item in answer.get("Contents", [])
        )
        prefixes = tuple(item["Prefix"][hidden:] for item in answer.get("CommonPrefixes", []))
        return Page(objects, prefixes, answer.get("NextContinuationToken", ""))

    def upload(
        self, path: Path, key: str, *, content_type: str = BINARY, metadata: Mapping[str, str] = NO_METADATA
    ) -> ObjectInfo:
        name, extra = self._name(key), {"ContentType": content_type, "Metadata": dict(metadata)}
        self._try(key, lambda: self._client.upload_file(str(path), self.bucket, name, extra, Config=_TRANSFER))
        return self.head(key)

    def download(self, key: str, path: Path) -> ObjectInfo:
        info, name = self.head(key), self._name(key)
        part = path.with_name(f".{path.name}.part")
        try:
            self._try(key, lambda: self._client.download_file(self.bucket, name, str(part), Config=_TRANSFER))
            if part.stat().st_size != info.size:
                raise StoreUnavailableError("The object came cut off.")
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
        return info

    def read_range(self, key: str, start: int, size: int, write: Write, *, etag: str = "") -> ObjectInfo:
        name, position, end, version = self._name(key), start, start + size, etag

        def read() -> ObjectInfo:
            nonlocal position, end, version
            condition: _IfMatch = {"IfMatch": version} if version else {}
            span = f"bytes={position}-{end - 1}"
            answer = self._client.get_object(Bucket=self.bucket, Key=name, Range=span, **condition)
            with answer["Body"] as body:
                info = s3_answers.part_info(key, position, version, answer)
                version, end = info.etag, min(end, info.size)
                while data := body.read(min(_PIECE, end - position)):
                    write(position, data)
                    position += len(data)
            if position < end:
                raise StoreUnavailableError(f"The object came cut off, {position} of {end} bytes.")
            return info

        try:
            return self._try(key, read)
        except s3_answers.BeyondEndError:
            return self.head(key)

    def link(self, key: str, seconds: int, *, filename: str = "") -> str:
        params = {"Bucket": self.bucket, "Key": self._name(key)}
        if filename:
            params["ResponseContentDisposition"] = f'attachment; filename="{filename}"'
        return self._client.generate_presigned_url("get_object", Params=params, ExpiresIn=seconds)

    def _write(
        self, key: str, data: bytes, content_type: str, metadata: Mapping[str, str], condition: Mapping[str, str]
    ) -> ObjectInfo:
        name = self._name(key)
        # tells our own write from another's when the answer to it was lost and the second try meets a 412
        nonce = {s3_answers.NONCE: uuid.uuid4().hex} if condition else {}
        arguments = {"ContentType": content_type, "Metadata": {**metadata, **nonce}, **condition}

        def write() -> ObjectInfo:
            answer = self._client.put_object(Bucket=self.bucket, Key=name, Body=data, **arguments)  # type: ignore[arg-type]
            return ObjectInfo(
                key, len(data), answer["ETag"], s3_answers.date(answer["ResponseMetadata"]), content_type, metadata
            )

        try:
            return self._try(key, write)
        except PreconditionFailedError:
            if nonce and self._nonce_of(key) == nonce[s3_answers.NONCE]:
                return self.head(key)
            raise

    def _nonce_of(self, key: str) -> str:
        try:
            name = self._name(key)
            return self._try(key, lambda: self._client.head_object(Bucket=self.bucket, Key=name))["Metadata"].get(
                s3_answers.NONCE, ""
            )
        except ObjectNotFoundError:
            return ""

    def _name(self, key: str) -> str:
        """The key in the bucket. Raises InvalidKeyError."""
        return keys.check(self.prefix + keys.check(key))

    def _try(self, key: str, call: Callable[[], T]) -> T:
        try:
            return self._attempts(key, call)
        except ExpiredCredentialsError:
            self.__dict__.pop("_client", None)  # the next one loads the credentials anew
            return self._attempts(key, call)

    def _attempts(self, key: str, call: Callable[[], T]) -> T:
        @retry(
            retry=retry_if_exception_type(StoreUnavailableError),
            stop=stop_after_attempt(_ATTEMPTS),
            wait=wait_random_exponential(multiplier=FIRST_WAIT, max=5),
            reraise=True,
        )
        def attempt() -> T:
            try:
                return call()
            except ClientError as error:
                raise s3_answers.translated(key, error) from error
            except S3UploadFailedError as error:
                cause = error.__context__
                raise (
                    s3_answers.translated(key, cause) if isinstance(cause, ClientError) else StoreUnavailableError()
                ) from error
            except _PASSING as error:
                raise StoreUnavailableError("The object store did not answer.") from error
            except BotoCoreError as error:
                raise StorageError(f"The object store client failed: {type(error).__name__}.") from error

        return attempt()
