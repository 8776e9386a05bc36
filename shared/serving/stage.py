"""A stage as the harness sees it: a folder's `main` module with `handle` and, if it has models, `setup`.

Knows how to read the module; nothing of what it does.
"""

from __future__ import annotations

import importlib
import inspect
import types
import typing
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from shared.context import Context, FrontContext, SetupContext
from shared.errors import ConfigError, InvalidCloudEventError
from shared.events import contract
from shared.events.event import Event
from shared.events.payloads import Payload
from shared.jobs.accepted import Accepted

Handle = Callable[[Payload, Context], Payload | tuple[Payload, ...] | None]
Door = Callable[[Event, FrontContext], Iterable[Accepted]]

PAYLOADS = typing.get_args(Payload)


@dataclass(frozen=True)
class Stage:
    name: str
    """The folder's name."""
    handle: Handle | None
    """For a stage that takes payloads."""
    door: Door | None
    """For a stage that takes raw events, from outside or from the broker's dead letter."""
    payloads: tuple[type[Payload], ...]
    """What `handle` takes; several have different outcomes."""
    setup: Callable[[SetupContext], None] | None
    front_door: bool
    """Whether the HTTP API is served by this stage."""
    repeatable: Callable[[Event], bool] | None
    """Tells, for a `door`, which events do the same however often they come: no record of them is kept."""
    fans_out: bool
    """Whether `handle` may return several payloads: then each is published, which needs a sink."""
    keeps_all: bool
    """Whether `door` also takes events of ours without a right proof, and asks `ctx.is_proven` itself."""

    def payload_of(self, event: Event) -> type[Payload]:
        """The class that this event's data must be.

        Raises InvalidCloudEventError for a type that is none of ours, or of an outcome or a medium that the stage does
        not take: data of the right shape under another name is not what a Trigger meant to deliver.
        """
        outcome = event.kind.outcome if event.kind else ""
        medium = str(event.extensions.get("media", contract.IMAGE))
        for payload in sorted(
            self.payloads, key=lambda kind: not kind.medium
        ):  # one for this medium before one for any
            if payload.outcome == outcome and payload.medium in ("", medium):
                return payload
        raise InvalidCloudEventError(
            f"The stage {self.name} does not take events of this type.", context={"attribute": "type"}
        )


def load(name: str, package: str) -> Stage:
    """Import `<package>.<name>.main`. Raises ConfigError when it is not a stage."""
    module = importlib.import_module(f"{package}.{name}.main")
    handle = getattr(module, "handle", None)
    if not callable(handle):
        raise ConfigError(f"{module.__name__} has no function handle(event, ctx).")
    taken = _taken(handle, module)
    raw = taken == (Event,)
    if not raw and not (taken and set(taken) <= set(PAYLOADS)):
        raise ConfigError(f"{module.__name__}: handle must say in its first parameter which payload it takes.")
    return Stage(
        name=name,
        handle=None if raw else handle,
        door=handle if raw else None,
        payloads=() if raw else taken,
        setup=getattr(module, "setup", None),
        front_door=bool(getattr(module, "FRONT_DOOR", False)),
        repeatable=getattr(module, "repeatable", None),
        fans_out=bool(getattr(module, "FANS_OUT", False)),
        keeps_all=bool(getattr(module, "KEEPS_ALL", False)),
    )


def _taken(handle: Callable[..., object], module: types.ModuleType) -> tuple[type, ...]:
    """The classes named by the first parameter's annotation; no other annotation needs to exist at run time."""
    first = next(iter(inspect.signature(handle).parameters), "")
    annotation = inspect.get_annotations(handle).get(first)
    holder = types.SimpleNamespace(__annotations__={first: annotation})
    try:
        resolved = typing.get_type_hints(holder, vars(module))[first]
    except NameError as error:
        raise ConfigError(f"{module.__name__}: {error.name} must be imported at run time.") from error
    return typing.get_args(resolved) or (resolved,)
