"""Door b: a job asked for over HTTP, with its pictures or with the names of pictures already stored.

Knows the store, the payloads and a request's parts as plain files; no web framework.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import BinaryIO

from shared import records as text
from shared.context import FrontContext
from shared.errors import JsonValue, QuotaExceededError, RequestError
from shared.events.choices import Options
from shared.events.payloads import Job, ObjectRef
from shared.jobs import examining, ids, inbox, making, options, records, slots
from shared.jobs.records import JobRecord
from shared.refusals import IdempotencyConflictError
from shared.rejections import InvalidManifestError
from shared.storage import keys
from shared.storage.protocol import ObjectStore
from shared.tenancy import permits
from shared.tenancy.tenant import Tenant

Fetch = Callable[[Sequence[str], str], Mapping[str, BinaryIO]]
"""A file for each of some addresses, or an error of our tree and no file. Second: the target's, maybe a video's."""


@dataclass(frozen=True)
class Asked:
    """Pictures examined, nothing stored yet."""

    source: tuple[ObjectRef, ...]
    target: ObjectRef
    options: Options
    files: Mapping[str, BinaryIO]
    """Key -> the picture's file, for those that came with the request or were fetched for it."""
    reference: ObjectRef | None = None
    priority: str = "interactive"
    media: str = examining.IMAGE
    """What the target is."""

    @property
    def pictures(self) -> tuple[ObjectRef, ...]:
        return (*self.source, self.target, *([self.reference] if self.reference else []))

    @property
    def digest(self) -> str:
        """The same pictures and options, however they were sent, have the same digest."""
        others = [ref.digest for ref in self.pictures[len(self.source) :]]
        pictures = [[ref.digest for ref in self.source], *others]
        return hashlib.sha256(text.dumps([pictures, text.write(self.options)])).hexdigest()

    def close(self) -> None:
        """Let go of the files."""
        for file in self.files.values():
            file.close()


def job_id(tenant: Tenant, idempotency_key: str | None) -> str:
    """Raises RequestError for a key that is not 1 to 255 visible ASCII characters."""
    if idempotency_key is None:
        return ids.fresh()
    if not (1 <= len(idempotency_key) <= 255 and idempotency_key.isascii() and idempotency_key.isprintable()):
        raise RequestError("Idempotency-Key has 1 to 255 visible ASCII characters.")
    return ids.of_request(tenant.name, idempotency_key)


def from_files(
    tenant: Tenant,
    job: str,
    sources: Sequence[BinaryIO],
    target: BinaryIO,
    chosen: JsonValue,
    *,
    reference: BinaryIO | None = None,
) -> Asked:
    """Look at every picture, one at a time in memory. Raises RejectedError, RequestError and InvalidOptionError."""
    if not 1 <= len(sources) <= inbox.MAX_SOURCES:
        raise RequestError(f"A job has 1 to {inbox.MAX_SOURCES} sources.", context={"field": "source"})
    asked = options.fit(options.parse(chosen), sources=len(sources), reference=reference is not None)
    options.permit(asked, tenant.policy)
    refs = [_examine(tenant, job, "source", file) for file in sources]
    last, media = _target(tenant, job, "target", target, asked)
    meant = None if reference is None else _examine(tenant, job, "reference", reference)
    files = dict(zip([ref.key for ref in refs], sources, strict=True)) | {last.key: target}
    if meant is not None and reference is not None:
        files[meant.key] = reference
    return Asked(tuple(refs), last, asked, files, meant, permits.priority(tenant.policy, "interactive"), media)


def from_names(store: ObjectStore, tenant: Tenant, job: str, body: JsonValue, fetch: Fetch) -> Asked:
    """Pictures of the tenant's own prefix, by full keys or names below its inbox, and pictures by their addresses.

    Raises RequestError, InvalidOptionError, RejectedError (a key outside, an object gone, a bad picture), and what
    `fetch` raises.
    """
    try:
        draft = inbox.parse_manifest(tenant.name, keys.inbox(tenant.name), body, addresses=True)
    except InvalidManifestError as error:
        raise RequestError(error.detail, context=error.context) from None
    options.permit(draft.options, tenant.policy)
    names = dict.fromkeys(filter(None, (*draft.source, draft.reference)))
    refs = {key: making.reference(store, tenant, key) for key in names if not inbox.is_address(key)}
    media = examining.IMAGE
    if not inbox.is_address(draft.target):
        refs[draft.target], media = making.target(store, tenant, draft.target, draft.options)
    files: dict[str, BinaryIO] = {}
    with ExitStack() as undo:
        addresses = [*filter(inbox.is_address, dict.fromkeys([*names, draft.target]))]
        fetched = {url: undo.enter_context(file) for url, file in fetch(addresses, draft.target).items()}
        for url, file in fetched.items():
            if url in names:
                refs[url] = _examine(tenant, job, "fetched", file)
            if url == draft.target:
                refs[url], media = _target(tenant, job, "fetched", file, draft.options)
            if files.setdefault(refs[url].key, file) is not file:
                file.close()  # two addresses, one picture
        undo.pop_all()
    return Asked(
        tuple(refs[key] for key in draft.source),
        refs[draft.target],
        draft.options,
        files,
        refs.get(draft.reference),
        permits.priority(tenant.policy, "interactive"),
        media,
    )


def submit(ctx: FrontContext, tenant: Tenant, job: str, asked: Asked, *, repeatable: bool) -> Job:
    """Take a slot, store the pictures, then the job; a repeat gets the job of the first time, whatever the quota.

    `repeatable`: whether the id would come again, so that a slot taken for it is not lost when the store fails now.
    Raises QuotaExceededError, with nothing stored, and IdempotencyConflictError when the id belongs to another request.
    """
    known = records.find(ctx.store, tenant.name, job) or _first(ctx, tenant, job, asked, repeatable)
    if known.request != asked.digest:
        raise IdempotencyConflictError
    return known.job


def _first(ctx: FrontContext, tenant: Tenant, job: str, asked: Asked, repeatable: bool) -> JobRecord:
    """The record that counts: also when another request with the same id was faster."""
    try:
        batch = asked.priority == "batch"
        taken = slots.take(ctx.store, tenant, job, batch=batch, now=ctx.now(), seconds=ctx.slot_seconds)
    except QuotaExceededError:
        known = records.find(ctx.store, tenant.name, job)
        if known is None:
            raise
        return known
    with ExitStack() as undo:
        if taken.fresh and not repeatable:
            undo.callback(slots.give_back, ctx.store, tenant.name, job)
        mine = _record(ctx, job, asked)
        kept = records.create(ctx.store, tenant.name, mine)
        undo.pop_all()
    if taken.fresh and kept != mine and records.exists(ctx.store, tenant.name, job, records.OUTCOME):
        slots.give_back(ctx.store, tenant.name, job)  # the job of the first request has come and gone meanwhile
    return kept


def _record(ctx: FrontContext, job: str, asked: Asked) -> JobRecord:
    """The job, its pictures stored."""
    for ref in asked.pictures:
        if ref.key in asked.files:
            media = asked.media if ref is asked.target else examining.IMAGE
            _store(ctx.store, job, ref, asked.files[ref.key], media)
    created = records.timestamp(ctx.now())
    payload = Job(
        job,
        asked.source,
        asked.target,
        asked.options,
        created=created,
        reference=asked.reference,
        priority=asked.priority,
        media=asked.media,
    )
    return JobRecord(payload, request=asked.digest)


def _examine(tenant: Tenant, job: str, role: str, file: BinaryIO) -> ObjectRef:
    return _placed(tenant, job, role, examining.source(tenant, "", file))


def _target(tenant: Tenant, job: str, role: str, file: BinaryIO, chosen: Options) -> tuple[ObjectRef, str]:
    ref, media = examining.target(tenant, "", file, chosen)
    return _placed(tenant, job, role, ref), media


def _placed(tenant: Tenant, job: str, role: str, ref: ObjectRef) -> ObjectRef:
    """Its name comes from the content, so that two requests with one id cannot change each other's pictures."""
    return replace(ref, key=keys.job(tenant.name, job, "input", f"{role}-{ref.digest[:32]}"))


def _store(store: ObjectStore, job: str, ref: ObjectRef, file: BinaryIO, media: str) -> None:
    about = {inbox.MARKER: job}
    if media == examining.VIDEO:
        with examining.named(file) as path:
            store.upload(path, ref.key, content_type=ref.content_type, metadata=about)
        return
    with examining.AT_ONCE:
        file.seek(0)
        store.put(ref.key, file.read(), content_type=ref.content_type, metadata=about)
