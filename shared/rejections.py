"""Every way in which what was sent can never be processed: each one `rejected` event, no retry.

The codes are part of the contract with callers. Knows the error tree only.
"""

from __future__ import annotations

from shared.errors import RejectedError


class MediaEmptyError(RejectedError):
    code = "media_empty"
    title = "The file is empty"


class MediaTruncatedError(RejectedError):
    code = "media_truncated"
    title = "The file is cut off"


class MediaCorruptError(RejectedError):
    code = "media_corrupt"
    title = "The file is damaged"


class UnsupportedMediaTypeError(RejectedError):
    status = 415
    code = "unsupported_media_type"
    title = "Not a supported format"


class NoVideoStreamError(RejectedError):
    code = "no_video_stream"
    title = "The file holds no moving pictures"


class VideoTooLargeError(RejectedError):
    """`context`: `limit_bytes`."""

    status = 413
    code = "video_too_large"
    title = "The video has too many bytes"


class VideoTooLongError(RejectedError):
    """`context`: `seconds` and `limit_seconds`, or `limit_frames`."""

    code = "video_too_long"
    title = "The video is too long"


class AnimationUnsupportedError(RejectedError):
    status = 415
    code = "animation_unsupported"
    title = "Animated pictures are not supported"


class ImageTooLargeError(RejectedError):
    status = 413
    code = "image_too_large"
    title = "The picture is too large"


class ImageTooSmallError(RejectedError):
    code = "image_too_small"
    title = "The picture is too small"


class NoFaceInSourceError(RejectedError):
    code = "no_face_in_source"
    title = "No face in the source"


class NoFaceInTargetError(RejectedError):
    code = "no_face_in_target"
    title = "No face in the target"


class FaceTooSmallError(RejectedError):
    code = "face_too_small"
    title = "The face is too small"


class AmbiguousSourceFaceError(RejectedError):
    """`context` holds `faces` (count) and `boxes` ([[x, y, width, height], ...] in pixels)."""

    code = "ambiguous_source_face"
    title = "The source shows several faces"


class SourceUnsuitedError(RejectedError):
    """The embedded swapper would make a poor picture of it. `context`: `warnings`, `source` (index), `field`."""

    code = "source_unsuited"
    title = "The source does not suit the swapper"


class NoFaceInReferenceError(RejectedError):
    code = "no_face_in_reference"
    title = "No face in the reference"


class AmbiguousReferenceFaceError(RejectedError):
    """`context` as for AmbiguousSourceFaceError."""

    code = "ambiguous_reference_face"
    title = "The reference shows several faces"


class NoMatchingFaceError(RejectedError):
    """`context` holds `similarity` (of the face most alike) and `minimum`."""

    code = "no_matching_face"
    title = "No face in the target is the reference's"


class NoEmbedderError(RejectedError):
    """A job asks for faces by reference, and there is no face recogniser that its tenant may use."""

    code = "no_embedder"
    title = "No face recogniser"


class ContentRefusedError(RejectedError):
    code = "content_refused"
    title = "Refused by moderation"


class UnusableOptionError(RejectedError):
    """An option in its range that the job's model cannot honour; `context["field"]` names it."""

    code = "unusable_option"
    title = "The model cannot do what an option asks for"


class UnknownModelError(RejectedError):
    """A job asks for a model that the catalogue does not have, or has for another role."""

    code = "unknown_model"
    title = "No such model"


class ModelForbiddenError(RejectedError):
    """The tenant's licence policy does not allow the model. `context`: `model`, `licence`, `policy`."""

    code = "model_forbidden"
    title = "The model is not allowed for this tenant"


class NotAllowedError(RejectedError):
    """A job asks for what its tenant's policy does not grant. `context`: `field`, and `model` or `stage`."""

    status = 403
    code = "not_allowed"
    title = "Not allowed for this tenant"


class ObjectGoneError(RejectedError):
    """The object named by an event or a request no longer exists."""

    code = "object_gone"
    title = "The object is gone"


class ObjectChangedError(RejectedError):
    """The object's bytes are not those that were accepted."""

    code = "object_changed"
    title = "The object was replaced"


class InvalidKeyError(RejectedError):
    """An object key that is malformed or leaves the tenant's prefix."""

    code = "invalid_key"
    title = "Object key not allowed"


class UnknownTenantError(RejectedError):
    code = "unknown_tenant"
    title = "Unknown tenant"


class TenantElsewhereError(RejectedError):
    """The tenant's policy says that it has an installation of its own, and this is not it; or this is another's."""

    status = 403
    code = "tenant_elsewhere"
    title = "The tenant is not served by this installation"


class InvalidManifestError(RejectedError):
    """A `*.job.json` upload that is not a valid job description."""

    code = "invalid_manifest"
    title = "Job manifest not valid"


class UrlNotAllowedError(RejectedError):
    """An address that must not be called for a tenant. Never says why, nor what its name leads to."""

    code = "url_not_allowed"
    title = "The address is not allowed"


class FetchFailedError(RejectedError):
    """A picture's address gives no picture; `context["status"]` is what its server answered, if that was the fault."""

    code = "fetch_failed"
    title = "The picture cannot be fetched"


class DeliveryRefusedError(RejectedError):
    """A webhook that must not or cannot ever be called (private address, 4xx answer)."""

    code = "delivery_refused"
    title = "The webhook cannot be called"
