"""The error tree: what went wrong, said once, readable on every door.

Each class carries the HTTP status of the API and a stable `code`. On the event path the harness reads the
same tree as a Knative broker does: a `RejectedError` is the caller's own fault and becomes one `rejected`
event, a `TransientError` is answered so that the broker sends the event again, and whatever has no class
here is a bug. Knows nothing but the standard library.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, TypeAlias, Union

JsonValue: TypeAlias = Union[str, int, float, bool, list["JsonValue"], dict[str, "JsonValue"], None]


class WakeswapError(Exception):
    """Base of every error this product raises on purpose.

    `detail` is shown to the caller, so it never holds a secret, a path of this machine or another tenant's name.
    `context` holds facts for programs (sizes, boxes, limits); it travels in the problem document and in the event.
    """

    status: ClassVar[int] = 500
    code: ClassVar[str] = "internal_error"
    title: ClassVar[str] = "Internal error"

    replaces_process: ClassVar[bool] = False
    """Whether the process cannot be trusted after it: the harness answers, then lets the process be replaced."""

    def __init__(self, detail: str = "", *, context: Mapping[str, JsonValue] | None = None) -> None:
        super().__init__(detail or self.title)
        self.detail = detail or self.title
        self.context: dict[str, JsonValue] = dict(context or {})


class RequestError(WakeswapError):
    """The request itself is wrong: the sender must change it. Events of this kind go to dead letter at once."""

    status = 400
    code = "invalid_request"
    title = "Invalid request"


class InvalidCloudEventError(RequestError):
    code = "invalid_cloudevent"
    title = "Not a valid CloudEvent"


class UnsupportedSpecVersionError(InvalidCloudEventError):
    code = "unsupported_specversion"
    title = "CloudEvents version not supported"


class EmptyDataError(InvalidCloudEventError):
    code = "empty_data"
    title = "The event has no data"


class BatchUnsupportedError(RequestError):
    status = 415
    code = "batch_unsupported"
    title = "Batched CloudEvents are not accepted"


class UnsupportedContentTypeError(RequestError):
    status = 415
    code = "unsupported_content_type"
    title = "Content type not supported"


class PayloadTooLargeError(RequestError):
    status = 413
    code = "payload_too_large"
    title = "The request body is too large"


class InvalidOptionError(RequestError):
    """An option out of range or unknown; `context["field"]` names it."""

    status = 422
    code = "invalid_option"
    title = "Option not valid"


class UnauthorizedError(RequestError):
    status = 401
    code = "unauthorized"
    title = "No valid key"


class ForbiddenError(RequestError):
    status = 403
    code = "forbidden"
    title = "Not allowed"


class NotFoundError(RequestError):
    """HTTP API only: a broker would send the event again on 404."""

    status = 404
    code = "not_found"
    title = "Not found"


class InvalidCursorError(RequestError):
    code = "invalid_cursor"
    title = "No cursor that was given out"


class RejectedError(WakeswapError):
    """What was sent can never be processed: one `rejected` event, no retry."""

    status = 422
    code = "rejected"
    title = "Rejected"


class TransientError(WakeswapError):
    """May work later: the answer makes the broker send the event again, an API caller gets Retry-After."""

    status = 503
    code = "unavailable"
    title = "Temporarily unavailable"
    retry_after: int = 2
    """Seconds for the Retry-After header."""

    def __init__(
        self, detail: str = "", *, context: Mapping[str, JsonValue] | None = None, retry_after: int = 0
    ) -> None:
        """`retry_after`: where this one knows better than its class."""
        super().__init__(detail, context=context)
        if retry_after:
            self.retry_after = retry_after


class BusyError(TransientError):
    """This very event is being worked on by another process."""

    status = 409
    code = "in_progress"
    title = "Already being worked on"


class OverloadedError(TransientError):
    """Every slot of this process is taken; another process, or this one in a moment, has room."""

    code = "overloaded"
    title = "All slots are taken"
    retry_after = 1


class MethodNotAllowedError(RequestError):
    """The path exists, the method does not."""

    status = 405
    code = "method_not_allowed"
    title = "Method not allowed"


class StoppingError(TransientError):
    code = "stopping"
    title = "This process is shutting down"


class SetupFailedError(TransientError):
    """A stage cannot start. Never permanent to the broker: the events wait until an operator has mended it."""

    code = "setup_failed"
    title = "The stage could not start"
    retry_after = 10


class DeadlineExceededError(TransientError):
    code = "deadline_exceeded"
    title = "Not finished in time"


class StoreUnavailableError(TransientError):
    code = "store_unavailable"
    title = "Object store not available"


class TenantNotReadyError(TransientError):
    """An upload came before its tenant was set up."""

    code = "tenant_not_ready"
    title = "The tenant is not set up yet"
    retry_after = 5


class BrokerUnavailableError(TransientError):
    code = "broker_unavailable"
    title = "The event could not be handed to the broker"


class QuotaExceededError(TransientError):
    status = 429
    code = "quota_exceeded"
    title = "Over quota"


class ModelError(TransientError):
    """A model cannot serve now. 503, so that no accepted event is lost while an operator mends it."""

    code = "model_unavailable"
    title = "Model not available"
    retry_after = 10


class ModelLoadingError(ModelError):
    code = "model_loading"
    title = "Models are loading"
    retry_after = 1


class ModelNotFoundError(ModelError):
    code = "model_not_found"
    title = "Model not found"


class ModelAccessDeniedError(ModelError):
    code = "model_access_denied"
    title = "No access to the model"


class ModelInvalidError(ModelError):
    """The file is not the model it should be; the detail names what it is (LFS pointer, HTML page, ...)."""

    code = "model_invalid"
    title = "Model file not valid"


class ModelIncompatibleError(ModelError):
    code = "model_incompatible"
    title = "Model too new for this runtime"


class ModelIncompleteError(ModelError):
    code = "model_incomplete"
    title = "A file of the model is missing"


class CacheFullError(ModelError):
    code = "cache_full"
    title = "No space left in the model cache"


class GpuUnavailableError(ModelError):
    code = "gpu_unavailable"
    title = "The GPU asked for is not available"


class GpuMemoryError(ModelError):
    """No memory for even one face. What holds it may be this process's own arena, which only a new process frees."""

    code = "gpu_out_of_memory"
    title = "Out of memory for the model"
    replaces_process = True


class GpuFaultError(ModelError):
    """The device failed in the middle of a run. CUDA then fails every later call of this process too."""

    code = "gpu_fault"
    title = "The GPU failed"
    replaces_process = True


class StorageError(WakeswapError):
    """Base of what a store says about one object; callers turn it into their own error."""

    status = 500
    code = "storage_error"
    title = "Object store error"


class ObjectNotFoundError(StorageError):
    code = "object_not_found"
    title = "No such object"


class PreconditionFailedError(StorageError):
    """A conditional write lost: the object exists (create) or has another ETag (replace)."""

    code = "precondition_failed"
    title = "The object was changed by another writer"


class StoreAccessDeniedError(StorageError):
    code = "store_access_denied"
    title = "The object store refuses access"


class ConfigError(WakeswapError):
    """A setting, manifest or table that cannot work; the process must not start."""

    code = "config_error"
    title = "Configuration not valid"
