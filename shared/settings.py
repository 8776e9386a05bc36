"""Everything that can be configured: typed, read from the environment once, documented where it is declared.

An empty variable counts as unset. A variable that starts with WAKESWAP_ and is not declared here is an error,
so that a misspelt setting never falls back to its default in silence. docs/settings.md is made from this
module and those of its parts by `python docs/generate.py`. Knows the standard library and the error tree.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any, cast

from shared.edge_settings import JwtSettings, RateSettings
from shared.errors import ConfigError
from shared.trace_settings import TraceSettings
from shared.variables import env as _env
from shared.variables import flag as _flag
from shared.variables import one_of as _one_of
from shared.variables import shared_secret as _shared_secret
from shared.variables import store_url as _store_url
from shared.variables import text as _text
from shared.variables import token as _token
from shared.variables import web_url as _web_url
from shared.variables import whole as _whole
from shared.video_settings import VideoSettings

PREFIX = "WAKESWAP_"
MODEL_CACHE = Path(".wakeswap/models")


@dataclass(frozen=True)
class StoreSettings:
    """The object store."""

    url: str = _env("WAKESWAP_STORE_URL", _store_url, "file:.wakeswap/objects")
    """`file:<folder>` or `s3://<bucket>[/<prefix>]`. Endpoint and credentials of S3 are boto3's own variables."""
    upload_grace_seconds: int = _env("WAKESWAP_UPLOAD_GRACE_SECONDS", _whole(0, 86400), 60)
    """Seconds after an upload in which an unknown tenant, or a picture that a manifest names, may still come to be."""
    secret_key: str = _env("AWS_SECRET_ACCESS_KEY", _text, "", secret=True)
    """Read by boto3 itself; kept here only so that no log line shows it."""
    session_token: str = _env("AWS_SESSION_TOKEN", _text, "", secret=True)
    """Read by boto3 itself; kept here only so that no log line shows it."""


@dataclass(frozen=True)
class ModelSettings:
    """Which models, and where their files are kept."""

    cache: Path = _env("WAKESWAP_MODEL_CACHE", Path, MODEL_CACHE)  # noqa: RUF009 - a Path is immutable
    """Folder of the node's model cache; pods of one node may share it."""
    bucket: str = _env("WAKESWAP_MODEL_BUCKET", _store_url, "")
    """Store URL of the model bucket, asked before the models' own sources. Empty: there is none."""
    tag: str = _env("WAKESWAP_MODEL_TAG", _text, "")
    """Version of the bucket's models, or a channel such as `stable`. Empty, or not in the bucket: the catalogue's."""
    lock: str = _env("WAKESWAP_MODEL_LOCK", _text, "")
    """File in which digests are pinned that the catalogue lacks. Empty: `models.lock.toml` beside the cache."""
    detector: str = _env("WAKESWAP_DETECTOR", _text, "centerface")
    """Catalogue name of the face detector."""
    landmarker: str = _env("WAKESWAP_LANDMARKER", _text, "face_mesh")
    """Catalogue name of the landmark model."""
    catalogue: str = _env("WAKESWAP_CATALOGUE", _text, "")
    """Folder with catalogue tables (`*.toml`) of your own, read beside the product's. Empty: there are none."""
    moderation: str = _env("WAKESWAP_MODERATION", _one_of("on", "off"), "on")
    """Whether pictures are looked at: `on`, or `off` for the whole installation (docs/moderation.md). No job and no
    tenant can turn it off."""
    moderator: str = _env("WAKESWAP_MODERATOR", _text, "open_nsfw")
    """Catalogue name of the moderation model."""
    reader: str = _env("WAKESWAP_READER", _text, "pp_ocr_v6_small")
    """Catalogue name of the model that reads text in pictures, loaded when a tenant has banned words. `none`: there is
    none, its files are not fetched, and jobs of tenants with banned words wait."""
    embedder: str = _env("WAKESWAP_EMBEDDER", _text, "")
    """Catalogue name of the face recogniser that finds faces by a reference picture. Empty: such jobs are rejected."""
    refiner: str = _env("WAKESWAP_REFINER", _text, "")
    """Catalogue name of a model that measures five points anew, more finely (`2dfan4`). Empty: none."""
    occluder: str = _env("WAKESWAP_OCCLUDER", _text, "xseg_1")
    """Catalogue name of the model behind the mask `occlusion`; loaded when a job first asks for it."""
    parser: str = _env("WAKESWAP_PARSER", _text, "bisenet_resnet_34")
    """Catalogue name of the model behind the mask `region`; loaded when a job first asks for it."""
    prefetch: str = _env("WAKESWAP_PREFETCH", _text, "")
    """Catalogue names or roles, separated by commas, of models that jobs ask for (swappers, `occluder`, enhancers,
    ...): fetched by the init step of the stage that runs them, so that no job waits for it. Others are fetched when
    asked for."""
    report: str = _env("WAKESWAP_FETCH_REPORT", _text, "")
    """File in which the init step tells the function beside it what it had to fetch, for its metrics. Empty: none."""
    device: str = _env("WAKESWAP_DEVICE", _one_of("cpu", "gpu", "gpu-preferred"), "cpu")
    """Where models run: `cpu`; `gpu`, CUDA or the process is not ready; `gpu-preferred`, CUDA where there is one."""
    gpu_wait_seconds: int = _env("WAKESWAP_GPU_WAIT_SECONDS", _whole(0, 3600), 0)
    """Seconds that a starting process waits for memory of the GPU that another still holds, not ready but alive; then
    it ends. Below the startup probe's time and the progress deadline. 0: it ends at once."""
    tensorrt: bool = _env("WAKESWAP_TENSORRT", _flag, False)
    """Run models through TensorRT, or the process is not ready; needs WAKESWAP_DEVICE=gpu. `true` or `false`."""
    graph: str = _env("WAKESWAP_GRAPH", _one_of("mapped", "plain"), "mapped")
    """`mapped`: keep each model's optimised graph in the cache and map its weights; `plain`: optimise in every wake."""
    derived: str = _env("WAKESWAP_DERIVED", _one_of("share", "fetch", "local"), "share")
    """Optimised graphs and TensorRT engines: `share`, taken from the bucket, and put there by the init step where the
    credentials allow it; `fetch`, only taken; `local`, neither."""
    budget_mb: int = _env("WAKESWAP_MODEL_BUDGET_MB", _whole(0, 10**7), 0)
    """MB of model files in memory at once (on a GPU: in its memory); models a stage warms stay. 0: no limit."""
    batch_elements: int = _env("WAKESWAP_BATCH_ELEMENTS", _whole(0, 10**9), 0)
    """Most input numbers of one run of a model, which bounds its memory. 0: the device's own, few on a CPU."""


@dataclass(frozen=True)
class ServingSettings:
    """The process that serves one stage."""

    port: int = _env("PORT", _whole(1, 65535), 8080)
    """Port to listen on; Knative sets it."""
    service: str = _env("K_SERVICE", _text, "")
    """Name of the Service; Knative sets it."""
    sink: str = _env("K_SINK", _web_url, "")
    """Where a stage publishes events outside of a reply; a SinkBinding sets it. Empty: replies only."""
    event: Path = _env("K_EVENT_PATH", Path, Path("/etc/jobsink-event"))  # noqa: RUF009 - a Path is immutable
    """Where the event of a process that works on one alone lies, as JSON: a file, or a folder with the file `event`.
    JobSink mounts it and says where (docs/video.md)."""
    concurrency: int = _env("WAKESWAP_CONCURRENCY", _whole(1, 1000), 1)
    """Events worked on at once by one process (threads); equals the Service's containerConcurrency."""
    timeout_seconds: int = _env("WAKESWAP_TIMEOUT_SECONDS", _whole(1, 86400), 290)
    """Seconds one event may take; a little less than the Service's timeoutSeconds, so that the stage answers first."""
    event_keys: str = _env("WAKESWAP_EVENT_KEYS", _text, "", secret=True)
    """`<id>=<secret>[,<id>=<secret>]`, required: what events are signed with, the same for all stages; 32 or more
    visible ASCII characters each. The first signs, all verify (docs/events.md). `unsigned` instead takes events from
    whoever can send them, and after keys also those without a proof, for the time of a change."""
    handovers: str = _env("WAKESWAP_HANDOVERS", _text, "")
    """For a process of several stages, JSON: `{"<stage>": [<filters of its Trigger>]}`, the events it gets in here."""
    lease_seconds: int = _env("WAKESWAP_LEASE_SECONDS", _whole(1, 3600), 15)
    """Seconds after which the work of a process that died may be taken over; renewed every third of it."""
    slot_seconds: int = _env("WAKESWAP_SLOT_SECONDS", _whole(10, 86_400), 900)
    """Seconds after which the slot of a job that nobody works on is free for another: longer than an event may have to
    wait for its turn. Renewed by every stage when less than half is left."""
    prices: str = _env("WAKESWAP_PRICES", _text, "")
    """Price file of the usage records (docs/usage.md). Empty: the product's own, whose prices are an example."""
    batch_spread_seconds: int = _env("WAKESWAP_BATCH_SPREAD_SECONDS", _whole(0, 60), 60)
    """Seconds over which the batches of several tenants that become due in the same minute are spread."""
    max_body_bytes: int = _env("WAKESWAP_MAX_BODY_BYTES", _whole(1024, 10**12), 1_110_000_000)
    """Largest request of the HTTP API in bytes: a video of 1 GB, two pictures of 50 MB and their form fields. Large
    parts lie on the disk while they are read, never in memory."""
    max_event_bytes: int = _env("WAKESWAP_MAX_EVENT_BYTES", _whole(1024, 10**9), 1_048_576)
    """Largest event or notification taken in, in bytes (SQS and SNS carry up to 1 MiB; ours stay under 64 KiB)."""
    log_level: str = _env("WAKESWAP_LOG_LEVEL", _one_of("DEBUG", "INFO", "WARNING", "ERROR"), "INFO")
    """Least severe level that is logged: DEBUG, INFO, WARNING or ERROR."""


@dataclass(frozen=True)
class TenantSettings:
    """Who may use the system. Texts as they are set; `shared.tenancy.directory` reads and checks them."""

    tenants: str = _env("WAKESWAP_TENANTS", _text, "")
    """JSON: `{"<tenant>": {"policy": {...}, "webhook": {"url": "https://..."}}}`, every part optional."""
    folder: str = _env("WAKESWAP_TENANTS_FOLDER", _text, "")
    """Folder of more tenants, `<tenant>.yaml` each (tenant.schema.json), read again when they change. Empty: none."""
    only: str = _env("WAKESWAP_ONLY_TENANT", _text, "")
    """The one tenant whose installation this is; the component dedicated-tenant sets it. Every other is refused. Empty:
    the shared installation, which refuses tenants whose policy says `isolation: dedicated`."""
    api_keys: str = _env("WAKESWAP_API_KEYS", _text, "", secret=True)
    """`tenant=key[,tenant=key]`: bearer keys of the HTTP API, 16 or more visible ASCII characters each. Intake only."""
    webhook_secrets: str = _env("WAKESWAP_WEBHOOK_SECRETS", _text, "", secret=True)
    """`tenant=whsec_<base64>[,...]`: what webhooks are signed with, of a folder's tenants too. Only notify needs it."""
    notification_token: str = _env("WAKESWAP_NOTIFICATION_TOKEN", _token, "", secret=True)
    """Bearer token (16 or more characters) of bucket notifications to /events/s3. Empty: that door is closed."""


@dataclass(frozen=True)
class FetchSettings:
    """Pictures that a job names by https address.

    Only intake fetches, and only from the hosts of the tenant's `fetch_hosts`. A host's certificate must be trusted by
    the system's store; OpenSSL's own SSL_CERT_FILE names another.
    """

    seconds: int = _env("WAKESWAP_FETCH_SECONDS", _whole(1, 300), 20)
    """Seconds that all pictures of one request together may take, names and redirects included."""
    at_once: int = _env("WAKESWAP_FETCH_AT_ONCE", _whole(1, 1000), 4)
    """Requests of one process that may be fetching; one more is answered 503 with Retry-After."""
    plain_http: bool = _env("WAKESWAP_FETCH_PLAIN_HTTP", _flag, False)
    """Whether http on port 80 will do too: whoever sits on the way can then change the picture."""


@dataclass(frozen=True)
class PrivacySettings:
    """Audit and retention. What is known of people's pictures later, and how long anything is kept (docs/audit.md)."""

    audit_key: str = _env("WAKESWAP_AUDIT_KEY", _shared_secret, "", secret=True)
    """Under which the audit names pictures, names and addresses: 32 or more visible ASCII characters, the same for all
    stages. Empty: decisions are on record all the same, and say nothing of which picture or address they were about."""
    abandoned_hours: int = _env("WAKESWAP_ABANDONED_HOURS", _whole(1, 24 * 3660), 24 * 14)
    """Hours after which retention ends a job that nothing moves, and deletes what belongs to no job: uploads that none
    took, dead letters, records of deliveries. Longer than a queue or a broker may keep an event: SQS up to 14 days."""


@dataclass(frozen=True)
class Settings:
    store: StoreSettings = field(default_factory=StoreSettings)
    models: ModelSettings = field(default_factory=ModelSettings)
    serving: ServingSettings = field(default_factory=ServingSettings)
    tenants: TenantSettings = field(default_factory=TenantSettings)
    jwt: JwtSettings = field(default_factory=JwtSettings)
    rates: RateSettings = field(default_factory=RateSettings)
    fetch: FetchSettings = field(default_factory=FetchSettings)
    privacy: PrivacySettings = field(default_factory=PrivacySettings)
    traces: TraceSettings = field(default_factory=TraceSettings)
    video: VideoSettings = field(default_factory=VideoSettings)

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> Settings:
        """Raises ConfigError naming the variable that is unknown or has a value that cannot work."""
        _refuse_unknown(environ)
        return cls(
            store=StoreSettings(**_values(fields(StoreSettings), environ)),
            models=ModelSettings(**_values(fields(ModelSettings), environ)),
            serving=ServingSettings(**_values(fields(ServingSettings), environ)),
            tenants=TenantSettings(**_values(fields(TenantSettings), environ)),
            jwt=JwtSettings(**_values(fields(JwtSettings), environ)),
            rates=RateSettings(**_values(fields(RateSettings), environ)),
            fetch=FetchSettings(**_values(fields(FetchSettings), environ)),
            privacy=PrivacySettings(**_values(fields(PrivacySettings), environ)),
            traces=TraceSettings(**_values(fields(TraceSettings), environ)),
            video=VideoSettings(**_values(fields(VideoSettings), environ)),
        )

    def secrets(self) -> tuple[str, ...]:
        """Every value that must never be shown, for the log's redaction."""
        tenants, store = self.tenants, self.store
        entries = f"{tenants.api_keys},{tenants.webhook_secrets},{self.serving.event_keys}".split(",")
        values = [entry.partition("=")[2].strip() for entry in entries]
        values += [self.jwt.secret, self.rates.store_password, self.privacy.audit_key, *self.traces.secrets()]
        return tuple(filter(None, [*values, tenants.notification_token, store.secret_key, store.session_token]))


GROUPS = (
    StoreSettings,
    ModelSettings,
    ServingSettings,
    TenantSettings,
    JwtSettings,
    RateSettings,
    FetchSettings,
    PrivacySettings,
    TraceSettings,
    VideoSettings,
)


def _values(items: tuple[Field[Any], ...], environ: Mapping[str, str]) -> dict[str, Any]:
    """What the environment sets; an empty variable counts as unset."""
    texts = {item: environ.get(item.metadata["variable"], "") for item in items}
    return {item.name: _read(item.metadata, text) for item, text in texts.items() if text}


def _read(metadata: Mapping[str, object], text: str) -> object:
    variable = metadata["variable"]
    read = cast(Callable[[str], object], metadata["read"])
    try:
        return read(text)
    except ValueError as error:
        shown = "The value" if metadata["secret"] else repr(text[:200])
        raise ConfigError(f"{variable}: {shown} {error}.", context={"variable": str(variable)}) from None


def _refuse_unknown(environ: Mapping[str, str]) -> None:
    known = [str(item.metadata["variable"]) for group in GROUPS for item in fields(group)]
    for name in sorted(environ):
        if name.startswith(PREFIX) and name not in known:
            nearest = difflib.get_close_matches(name, known, n=1, cutoff=0)[0]
            raise ConfigError(f"{name} is not a setting; the nearest is {nearest}.", context={"variable": name})
