"""Door a: upload notifications. Each says that some object was written; what lies there now decides.

Knows the inbox grammar, the store and the tenants.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from shared.context import FrontContext
from shared.errors import ObjectNotFoundError, RejectedError, TenantNotReadyError, TransientError
from shared.events.notifications import Ignored, Notification, ObjectCreated
from shared.jobs import ids, inbox, line, making
from shared.jobs.accepted import Accepted
from shared.jobs.making import Made
from shared.rejections import InvalidKeyError, ObjectGoneError, UnknownTenantError
from shared.storage import keys
from shared.storage.protocol import ObjectInfo
from shared.tenancy.tenant import Tenant

UPLOAD = making.Origin("upload")


def accept(notifications: Iterable[Notification], ctx: FrontContext) -> Iterator[Accepted]:
    """The events that some notifications lead to; one by one, so that none waits for or fails with another.

    What may work later is raised as a TransientError after all others had their turn; the repeat that follows makes
    the same jobs again, under the same ids.
    """
    later: TransientError | None = None
    for notification in notifications:
        ctx.deadline.check()
        try:
            yield from _one(notification, ctx)
        except _NothingToDoError as reason:
            ctx.metrics.count("uploads_ignored", reason=str(reason))
            ctx.log.info("upload ignored: %s", reason)
        except TransientError as error:
            ctx.log.info("upload has to wait: %s", error.code)
            later = later or error
    if later is not None:
        raise later


class _NothingToDoError(Exception):
    """The reason, in one word, why a notification leads to no event."""


def _one(notification: Notification, ctx: FrontContext) -> Iterator[Accepted]:
    if isinstance(notification, Ignored):
        raise _NothingToDoError(notification.reason)
    if notification.bucket != ctx.bucket or not notification.key.startswith(ctx.key_prefix):
        raise _NothingToDoError("other_bucket")
    key = notification.key[len(ctx.key_prefix) :]
    name = _raw_tenant(key)
    if name is None:
        raise _NothingToDoError("outside_inbox")
    job_id = ids.of_refused(name, key, notification.etag, notification.sequencer, notification.version)
    try:
        tenant = _tenant(name, notification, ctx)
        ctx.tenants.admit(tenant)
        made = _upload(tenant, key, notification, ctx)
    except RejectedError as error:
        yield making.rejected(name, job_id, error)
    else:
        yield from line.admit(ctx, tenant, made)


def _raw_tenant(key: str) -> str | None:
    """The tenant whose inbox a key names by its first segments, as they are: nothing is resolved or normalised."""
    parts = key.split("/", 3)
    if len(parts) < 4 or parts[0] + "/" != keys.TENANTS or parts[2] != "inbox":
        return None
    try:
        return keys.tenant_name(parts[1])
    except UnknownTenantError:
        return None


def _tenant(name: str, created: ObjectCreated, ctx: FrontContext) -> Tenant:
    try:
        return ctx.tenants.get(name)
    except UnknownTenantError:
        if _is_recent(created, ctx):
            raise TenantNotReadyError from None
        raise


def _upload(tenant: Tenant, key: str, created: ObjectCreated, ctx: FrontContext) -> Made:
    info = _head(tenant, key, ctx)
    if inbox.MARKER in info.metadata:
        raise _NothingToDoError("own_object")
    refused = ids.of_uploads(tenant.name, key, {key: info})
    try:
        draft = inbox.plan(ctx.store, tenant.name, key)
        if draft is None:
            raise _NothingToDoError("nothing_to_start")
        return making.make(ctx.store, tenant, draft, UPLOAD, ctx.now())
    except ObjectGoneError as error:
        if error.context.get("key") != key and _is_recent(created, ctx):
            raise TransientError(error.detail) from error
        return Made(making.rejected(tenant.name, refused, error), fresh=True)
    except RejectedError as error:
        return Made(making.rejected(tenant.name, refused, error), fresh=True)


def _head(tenant: Tenant, key: str, ctx: FrontContext) -> ObjectInfo:
    try:
        return ctx.store.head(keys.inside(tenant.name, key))
    except ObjectNotFoundError:
        raise ObjectGoneError(context={"key": key}) from None
    except InvalidKeyError:
        ctx.log.warning("upload with a key that is not allowed")
        raise


def _is_recent(created: ObjectCreated, ctx: FrontContext) -> bool:
    return created.time is not None and ctx.now() - created.time < ctx.grace_seconds
