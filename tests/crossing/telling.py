"""Attempts by uploads and by events: what acme puts into its inbox, and what somebody sends to a stage."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from shared.events.event import Event
from shared.events.payloads import Rejection
from tests.crossing.asking import FIELDS, Rows, Spelling, named
from tests.crossing.spellings import KEYS
from tests.crossing.world import ACME, ACME_KEY, Target, World, event_of, job_of
from tests.signing import signed
from tests.unit.jobs.world import picture

Forge = Callable[[Event, str], Event]
Batch = Callable[[Target], dict[str, object]]

SENT_BY_THE_BUCKET = ("the whole key", "encoded key", "line break", "nul behind", "space behind", "prefix alone")
"""Spellings that in a notification are keys of globex itself, of which the bucket does tell."""

FOLDERS: Mapping[str, Spelling] = {
    # below acme's inbox; each gets a name that nobody had before
    "template": lambda t, new: f"templates/{t.name}/{new}.jpg",
    "template with tenant": lambda t, new: f"templates/{t.tenant}/{new}.jpg",
    "template, encoded": lambda t, new: f"templates/..%2F..%2F{t.tenant}%2Ftemplates%2F{t.name}/{new}.jpg",
    "template, wide dots": lambda t, new: f"templates/\uff0e\uff0e/{t.name}/{new}.jpg",
    "folder": lambda t, new: f"{t.name}/{new}/source.jpg",
    "folder with tenant": lambda t, new: f"of/tenants/{t.tenant}/inbox/{t.name}/{new}/source.jpg",
    "folder, encoded": lambda t, new: f"..%2F..%2F{t.tenant}%2Finbox%2F{t.name}{new}/source.jpg",
    "picture": lambda t, new: f"{t.name}.{new}.jpg",
    "hidden": lambda t, new: f".{t.tenant}/{new}/source.jpg",
}


def _with(event: Event, **extensions: str) -> Event:
    return replace(event, extensions={**event.extensions, **extensions})


def _doubled(event: Event, tenant: str) -> Event:
    return _with(event, tenantid=tenant, proof=str(signed(event).extensions["proof"]) * 2)


FORGERIES: Mapping[str, Forge] = {
    # each gets an event that is rightly acme's, and the tenant whose it shall seem
    "tenant exchanged": lambda event, tenant: _with(signed(event), tenantid=tenant),
    "no proof": lambda event, tenant: _with(event, tenantid=tenant),
    "empty digest": lambda event, tenant: _with(event, tenantid=tenant, proof="test."),
    "a digest of zeros": lambda event, tenant: _with(event, tenantid=tenant, proof="test." + "0" * 64),
    "another key": lambda event, tenant: _with(event, tenantid=tenant, proof="other." + "0" * 64),
    "the proof twice": _doubled,
    "tenant in capitals": lambda event, tenant: _with(signed(event), tenantid=tenant.upper()),
    "both tenants": lambda event, tenant: _with(signed(event), tenantid=f"{ACME},{tenant}"),
    "a path as tenant": lambda event, tenant: _with(signed(event), tenantid=f"{ACME}/../{tenant}"),
    "space behind": lambda event, tenant: _with(signed(event), tenantid=f"{tenant} "),
    "other names": lambda event, tenant: _with(signed(replace(event, extensions={})), tenant=tenant, tenantid0=tenant),
    "another extension": lambda event, tenant: _with(signed(event), tenantid=tenant, source0="/wakeswap/intake"),
    "another job": lambda event, _: replace(signed(event), subject="job-00000009"),
    "another type": lambda event, tenant: _with(replace(signed(event), type="x.completed.v1"), tenantid=tenant),
}

BATCHES: Mapping[str, Batch] = {
    "a path": lambda t: {"tenant": f"{ACME}/../{t.tenant}", "prefix": ""},
    "capitals": lambda t: {"tenant": t.tenant.upper(), "prefix": ""},
    "slash behind": lambda t: {"tenant": f"{t.tenant}/", "prefix": ""},
    "a list": lambda t: {"tenant": [ACME, t.tenant], "prefix": ""},
    "nobody": lambda t: {"tenant": "", "prefix": f"{t.tenant}/"},
}


def _manifest(world: World, t: Target, field: str, spell: Spelling) -> None:
    body = json.dumps(named(field, spell(t, f"inbox/{t.name}.jpg")))
    world.notify_of(world.upload(f"{world.fresh()}.job.json", body.encode()))


def _notification(world: World, t: Target, spell: Spelling) -> None:
    world.notify_of(spell(t, f"inbox/{t.name}/source.jpg"))


def _refused_notification(world: World, t: Target, token: str) -> None:
    world.notify_of(f"tenants/{t.tenant}/inbox/{t.name}/source.jpg", token=token.format(t.tenant))


def _upload(world: World, t: Target, place: Spelling) -> None:
    key = world.upload(place(t, world.fresh()), picture(7))
    world.notify_of(key.replace("%", "%25"))  # as it is form-urlencoded in a notification


def _reference(world: World, t: Target, what: str, spell: Spelling) -> None:
    job = job_of(t, origin=what, key=spell(t, f"inbox/{t.name}.jpg"))
    job = replace(job, job=f"job-{world.fresh()}")
    world.deliver(world.loader, signed(event_of(job, ACME, world.fresh())))


def _forged(world: World, t: Target, door: str, state: str, forge: Forge) -> None:
    if door in ("intake", "notify"):
        end = Rejection(t.jobs[state], "detect", "no_face_in_source", "No face.", 422)
        event = event_of(end, ACME, world.fresh(), "detect")
    else:
        event = event_of(job_of(t, state, origin="load"), ACME, world.fresh())
    world.deliver(getattr(world, door), forge(event, t.tenant))


def _batch(world: World, t: Target, data: Batch) -> None:
    source, body = f"/pings/{world.fresh()}", json.loads(json.dumps(data(t)))
    event = Event(world.fresh(), source, "dev.knative.sources.ping", datacontenttype="application/json", data=body)
    world.deliver(world.intake, event)


def _prefixed(t: Target, spell: Spelling) -> dict[str, object]:
    return {"tenant": ACME, "prefix": spell(t, "inbox/")}


def _uploads() -> Rows:
    for spelling, spell in KEYS.items():
        for field in FIELDS:
            yield f"manifest: {field}, {spelling}", partial(_manifest, field=field, spell=spell)
        if spelling not in SENT_BY_THE_BUCKET:
            yield f"notification: {spelling}", partial(_notification, spell=spell)
    for name, token in (("empty", ""), ("own key", ACME_KEY), ("name", "{}"), ("begun", "token-of-the-bucke")):
        yield f"notification: token {name}", partial(_refused_notification, token=token)
    for name, place in FOLDERS.items():
        yield f"upload: {name}", partial(_upload, place=place)


def _references() -> Rows:
    """References in an event that is rightly acme's: whatever a stage does with them."""
    for what in ("load", "read", "head", "list", "link", "save", "publish"):
        for spelling, spell in KEYS.items():
            yield f"reference: {what}, {spelling}", partial(_reference, what=what, spell=spell)


def _events() -> Rows:
    for door in ("loader", "intake", "notify", "dead_letter"):
        for name, forge in FORGERIES.items():
            for state in ("queued", "succeeded"):
                yield f"event: {door}, {state}, {name}", partial(_forged, door=door, state=state, forge=forge)


def _clocks() -> Rows:
    """Batches of acme's whose prefix is another's, and batches whose tenant is no name."""
    for spelling, spell in KEYS.items():
        yield f"clock: {spelling}", partial(_batch, data=partial(_prefixed, spell=spell))
    for name, data in BATCHES.items():
        yield f"clock: tenant {name}", partial(_batch, data=data)


PARTS = (_uploads, _references, _events, _clocks)
