"""The HTTP API and the door for bucket notifications: routes over the job library, mounted beside the event path.

Knows flask, the doors and the job views. What each route takes and gives is written down in openapi.json.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path

from flask import Blueprint, Flask, Response, redirect, request
from flask.typing import ResponseReturnValue

from shared import records as text
from shared.context import FrontContext, Metrics
from shared.errors import (
    BrokerUnavailableError,
    ForbiddenError,
    NotFoundError,
    ObjectNotFoundError,
    QuotaExceededError,
    RejectedError,
    RequestError,
    StoreUnavailableError,
    UnauthorizedError,
)
from shared.events import notifications
from shared.events.payloads import Job
from shared.jobs import line, making, records, requests, uploads, views
from shared.jobs.accepted import Accepted
from shared.jobs.requests import Asked, Fetch
from shared.jobs.views import FAILED, REJECTED, SUCCEEDED
from shared.net.fetch import Fetcher
from shared.serving import api_documents, api_forms, measuring, streaming, tracing
from shared.serving.answers import NOTHING, PUBLISHED, Reply, problem
from shared.serving.edge import Edge
from shared.serving.web import read_body, respond
from shared.telemetry import spans
from shared.telemetry.logs import bind
from shared.telemetry.spans import Tracer
from shared.tenancy.caller import Caller
from shared.tenancy.tenant import Tenant

MAX_WAIT_SECONDS = 60.0
"""Longest that `Prefer: wait` holds a request: load balancers cut silent connections after a minute or so."""
MAX_PAGE = 100


@dataclass(frozen=True)
class Front:
    """What the routes work with."""

    context: Callable[[], FrontContext]
    """A new one for every request: it carries the request's deadline."""
    publish: Callable[[Accepted, str], None]
    """Second argument: the traceparent. Raises BrokerUnavailableError."""
    notification_token: str
    """Bearer token of /events/s3; empty: that door is closed."""
    max_event_bytes: int
    stopping: Callable[[], bool]
    """Whether the process has to end: then nobody is kept waiting for a job that others work on."""
    edge: Edge = field(default_factory=Edge)
    """Who is let in, and how often."""
    fetcher: Fetcher = field(default_factory=Fetcher)
    """Gets the pictures that a request names by address."""
    tracer: Tracer = tracing.IDS


def mount(app: Flask, front: Front) -> None:
    api, routes = Blueprint("front", __name__), _Routes(front)
    api.add_url_rule("/openapi.json", "openapi", lambda: Response(document(), content_type="application/json"))
    for route, name, view in (
        ("POST /events/s3", "notifications", routes.notifications),
        ("POST /v1/jobs", "submit", routes.submit),
        ("DELETE /v1/jobs/<job_id>", "cancel", routes.cancel),
    ):
        method, _, path = route.partition(" ")
        api.add_url_rule(path, name, _traced(front.tracer, route, view), methods=[method])
    api.add_url_rule("/v1/jobs", "list", routes.listing)
    api.add_url_rule("/v1/jobs/<job_id>", "show", routes.show)
    api.add_url_rule("/v1/jobs/<job_id>/result", "result", routes.result)
    api.register_error_handler(UnauthorizedError, _unauthorized)
    api.after_request(front.edge.tell)
    api.after_request(partial(_counted, front.context().metrics))
    app.register_blueprint(api)


@cache
def document() -> bytes:
    """The API's OpenAPI 3.1 document."""
    return Path(__file__).with_name("openapi.json").read_bytes()


class _Routes:
    def __init__(self, front: Front) -> None:
        self._front = front

    def submit(self) -> Response:
        ctx = self._front.context()
        caller, key = self._front.edge.caller(request, ctx.tenants), request.headers.get("Idempotency-Key")
        owner = caller.tenant
        job_id = requests.job_id(owner, key)
        with bind(tenant=owner.name, job=job_id):
            with self._audited(ctx, caller, job_id), self._asked(ctx, owner, job_id) as asked:
                job = requests.submit(ctx, owner, job_id, asked, repeatable=key is not None)
            self._publish(ctx, caller, job, repeatable=key is not None)
            wait = api_forms.wait_seconds(request, min(MAX_WAIT_SECONDS, ctx.deadline.remaining()))
            return respond(self._after(ctx, owner.name, job.job, wait))

    def listing(self) -> Response:
        ctx = self._front.context()
        owner = self._front.edge.caller(request, ctx.tenants).tenant
        limit = api_forms.number(request, "limit", 20, MAX_PAGE)
        status, cursor = request.args.get("status", ""), request.args.get("cursor", "")
        found = views.listing(ctx.store, owner.name, status=status, limit=limit, cursor=cursor)
        jobs = [api_documents.job(entry) for entry in found.jobs]
        return respond(api_documents.reply({"jobs": jobs, "cursor": found.cursor}))

    def show(self, job_id: str) -> Response:
        ctx = self._front.context()
        view = views.view(ctx.store, self._front.edge.caller(request, ctx.tenants).tenant.name, job_id)
        return respond(api_documents.reply(api_documents.job(view)))

    def cancel(self, job_id: str) -> Response:
        ctx = self._front.context()
        caller = self._front.edge.caller(request, ctx.tenants)
        owner = caller.tenant
        self._cancel(ctx, caller, job_id)
        with suppress(BrokerUnavailableError):  # then the clock starts whoever waits for the slot
            for entry in line.start(ctx, owner):
                self._front.publish(entry, _traceparent())
        return respond(NOTHING)

    def result(self, job_id: str) -> ResponseReturnValue:
        ctx = self._front.context()
        owner = self._front.edge.caller(request, ctx.tenants).tenant
        view = views.view(ctx.store, owner.name, job_id)
        if view.status != SUCCEEDED or view.outcome is None or view.outcome.image is None:
            raise NotFoundError(f"The job has no result: it is {view.status}.")
        image = view.outcome.image
        try:
            link = ctx.store.link(image.key, owner.policy.link_seconds, filename=image.key.rpartition("/")[2])
            return redirect(link, 307) if link.startswith(("https:", "http:")) else streaming.picture(ctx.store, image)
        except ObjectNotFoundError:
            raise NotFoundError("The result is no longer stored.") from None

    def notifications(self) -> Response:
        token = self._front.notification_token
        if not token:
            raise ForbiddenError("This door is closed: no token is set for it.")
        self._front.edge.notifier(request, token)
        try:
            body = text.loads(read_body(self._front.max_event_bytes))
        except ValueError:
            raise RequestError("A notification is JSON.") from None
        accepted = False
        for entry in uploads.accept(notifications.parse(body), self._front.context()):
            self._front.publish(entry, _traceparent())
            accepted = True
        return respond(PUBLISHED if accepted else NOTHING)

    @contextmanager
    def _audited(self, ctx: FrontContext, caller: Caller, job_id: str) -> Iterator[None]:
        """Have it put on record that policy or quota refuses a job; a request that nobody can read is no decision."""
        audit, tenant, by = self._front.edge.audit, caller.tenant.name, caller.key_id
        try:
            yield
        except QuotaExceededError as error:
            measuring.over_quota(ctx.metrics, error.context.get("limit", ""), caller.tenant)
            audit.turned_away(error, tenant=tenant, by=by)
            raise
        except RejectedError as error:
            measuring.rejected(ctx.metrics, making.STAGE, error.code, caller.tenant)
            audit.refused(error, tenant, by, job_id)
            raise

    def _cancel(self, ctx: FrontContext, caller: Caller, job_id: str) -> None:
        tenant = caller.tenant.name
        when = records.cancel(ctx.store, tenant, job_id, ctx.now())
        line.withdraw(ctx.store, tenant, job_id)
        self._front.edge.audit.cancelled(tenant, caller.key_id, job_id, when)

    def _asked(self, ctx: FrontContext, owner: Tenant, job_id: str) -> closing[Asked]:
        return closing(api_forms.asked(request, ctx.store, owner, job_id, self._fetch(ctx, owner)))

    def _fetch(self, ctx: FrontContext, owner: Tenant) -> Fetch:
        policy, fetcher = owner.policy, self._front.fetcher
        most = max(policy.max_bytes, policy.max_video_bytes)
        return lambda urls, target: fetcher.fetch(
            urls, policy.fetch_hosts, policy.max_bytes, ctx.deadline.remaining(), videos={target: most}
        )

    def _publish(self, ctx: FrontContext, caller: Caller, job: Job, *, repeatable: bool) -> None:
        try:
            accepted = Accepted(caller.tenant.name, job, cause=job.job, by=caller.key_id)
            self._front.publish(accepted, _traceparent())
        except (BrokerUnavailableError, StoreUnavailableError):
            if not repeatable:  # nobody can ask for this job again: whatever the broker got must not run
                self._cancel(ctx, caller, job.job)
            raise

    def _after(self, ctx: FrontContext, tenant: str, job_id: str, wait: float) -> Reply:
        """Look at the job until it has ended or the wait is over; the look costs two short reads."""
        begun = time.monotonic()
        while (outcome := views.read_end(ctx.store, tenant, job_id)) is None:
            waited = time.monotonic() - begun
            left = min(wait - waited, ctx.deadline.remaining())
            if left <= 0 or self._front.stopping():
                break
            time.sleep(min(pause(waited), left))
        headers = [("Location", api_documents.path(job_id))]
        if wait:
            headers.append(("Preference-Applied", f"wait={wait:g}"))
        if outcome is not None and outcome.status in (REJECTED, FAILED):
            return api_documents.fault(job_id, outcome, *headers)
        shown = api_documents.job(views.view(ctx.store, tenant, job_id))
        return api_documents.reply(shown, 200 if outcome is not None else 202, *headers)


def _traceparent() -> str:
    return str(spans.current() or "")


def _traced(tracer: Tracer, route: str, view: Callable[..., Response]) -> Callable[..., Response]:
    """A route whose requests start or end jobs: what follows from them is below their span."""

    def work(**arguments: str) -> Response:
        with tracing.of_request(tracer, route, request.headers.get("traceparent", "")) as span, bind(**span.ids()):
            response = view(**arguments)
            span.note(http__response__status_code=response.status_code)
            return response

    return work


def _counted(metrics: Metrics, response: Response) -> Response:
    metrics.count("requests", route=(request.endpoint or "").removeprefix("front."), status=str(response.status_code))
    return response


def _unauthorized(error: UnauthorizedError) -> Response:
    response = respond(problem(error))
    response.headers["WWW-Authenticate"] = "Bearer"
    return response


def pause(waited: float) -> float:
    """Seconds to the next look at the store for a caller who has waited so long: an answer is a twentieth late."""
    return min(max(waited / 20, 0.05), 0.5)
