"""What the HTTP API shows of a job: JSON documents, and a job's own fault as a problem.

Knows the job views; no web framework.
"""

from __future__ import annotations

from shared import records
from shared.errors import JsonValue
from shared.events.contract import VIDEO
from shared.jobs.decisions import NSFW, Decision
from shared.jobs.records import timestamp
from shared.jobs.views import CANCELLED_STATUS, FAILED, REJECTED, JobView, Outcome, StageView
from shared.serving.answers import PROBLEM, PROBLEM_TYPE, Reply

JSON = "application/json"
_NOT_STORED = ("Cache-Control", "no-store")


def path(job_id: str) -> str:
    return f"/v1/jobs/{job_id}"


def reply(value: JsonValue, status: int = 200, *headers: tuple[str, str]) -> Reply:
    return Reply(status, (("Content-Type", JSON), _NOT_STORED, *headers), records.dumps(value))


def fault(job_id: str, outcome: Outcome, *headers: tuple[str, str]) -> Reply:
    """How a job ended badly, with the status that the same fault has when it is seen at once."""
    fields: dict[str, JsonValue] = {
        "type": PROBLEM_TYPE + outcome.code,
        "title": "The job was rejected" if outcome.status == REJECTED else "The job failed",
        "status": outcome.http_status,
        "detail": outcome.detail,
        "code": outcome.code,
        "instance": path(job_id),
    }
    if outcome.context:
        fields["context"] = dict(outcome.context)
    return Reply(outcome.http_status, (("Content-Type", PROBLEM), _NOT_STORED, *headers), records.dumps(fields))


def job(view: JobView) -> JsonValue:
    fields: dict[str, JsonValue] = {"id": view.id, "status": view.status, "href": path(view.id)}
    if view.job is not None:
        fields["created"] = view.job.created
        fields["origin"] = view.job.origin
        fields["priority"] = view.job.priority
        fields["media"] = view.job.media
        fields["options"] = records.write(view.job.options)
    fields["stages"] = [_stage(entry) for entry in view.stages]
    if view.progress is not None:
        fields["progress"] = records.write(view.progress)
    if view.moderation:
        fields["moderation"] = [_decision(stage, one) for stage, made in view.moderation.items() for one in made]
    if view.outcome is not None and view.status != CANCELLED_STATUS:
        fields |= _outcome(view.id, view.outcome)
    return fields


def _stage(entry: StageView) -> JsonValue:
    fields: dict[str, JsonValue] = {
        "stage": entry.stage,
        "state": "done" if entry.finished else "working",
        "started": timestamp(entry.started),
        "wake_seconds": round(entry.woke, 3),
    }
    if entry.finished:
        fields["finished"] = timestamp(entry.finished)
        fields["work_seconds"] = round(entry.finished - entry.started, 3)
    return fields


def _decision(stage: str, one: Decision) -> JsonValue:
    fields: dict[str, JsonValue] = {"stage": stage, "picture": one.picture, "check": one.check, "action": one.action}
    fields |= {"model": one.model, "model_digest": one.digest, "score": one.score}
    return fields | ({"threshold": one.threshold} if one.check == NSFW else {"words": [*one.words]})


def _outcome(job_id: str, outcome: Outcome) -> dict[str, JsonValue]:
    if outcome.status in (REJECTED, FAILED) or outcome.image is None:
        fault_fields: dict[str, JsonValue] = {
            "code": outcome.code,
            "detail": outcome.detail,
            "stage": outcome.stage,
            "status": outcome.http_status,
            "context": dict(outcome.context),
        }
        return {"error": fault_fields}
    result: dict[str, JsonValue] = {
        "href": path(job_id) + "/result",
        "content_type": outcome.image.content_type,
        "size": outcome.image.size,
        "sha256": outcome.image.digest,
        "width": outcome.width,
        "height": outcome.height,
        "faces": [records.write(face) for face in outcome.faces],
        "source_faces": [records.write(face) for face in outcome.source_faces],
        "warnings": list(outcome.warnings),
        "provider": outcome.provider,
        "media": outcome.media,
    }
    if outcome.media == VIDEO:
        result["seconds"] = outcome.seconds
        result["frames"] = outcome.frames
        result["frames_swapped"] = outcome.frames_swapped
        result["frames_without_face"] = outcome.frames_without_face
    if outcome.resized_from is not None:
        result["resized_from"] = records.write(outcome.resized_from)
    return {"result": result}
