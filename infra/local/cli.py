"""The command line: `python -m infra.local up | run | demo | status | events | replay`."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import logging
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from pathlib import Path

import aiohttp
from rich.console import Console

from infra.local import demo, tables
from infra.local.client import connect
from infra.local.eventing.writer import StoreError
from infra.local.fields import ManifestError
from infra.local.options import Options
from infra.local.platform import Platform
from infra.local.serving.activator import PortError
from infra.local.serving.containers import RESERVED_VARIABLES
from infra.local.signals import cancellable, wait_for_end
from infra.local.state import Facts, StateError

Command = Callable[[argparse.Namespace, Options], Coroutine[None, None, int]]

DEMO_IDLE_SECONDS = 4.0
JOB_SECONDS = 600.0
EXPECTED = (StateError, ManifestError, PortError, StoreError, demo.JobError, aiohttp.ClientError, OSError)

WIDTH_OF_PIPES = 240

out = Console(soft_wrap=True, width=None if sys.stdout.isatty() else WIDTH_OF_PIPES)
err = Console(stderr=True, soft_wrap=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0 done, 1 it did not work (code and reason on stderr), 2 wrong arguments."""
    parsed = _parser().parse_args(arguments)
    logging.basicConfig(
        level=logging.INFO if parsed.command is _up else logging.WARNING,
        format="%(asctime)s %(levelname)s %(message)s",
        datefmt="%H:%M:%S",
        stream=sys.stderr,
    )
    status = 1
    try:
        status = asyncio.run(cancellable(parsed.command(parsed, _options(parsed))))
    except EXPECTED as error:
        _say(str(error) or type(error).__name__, style="red")
    except (KeyboardInterrupt, asyncio.CancelledError):
        status = 130
    return status


def _say(text: str, style: str = "dim") -> None:
    """For the person at the terminal, if it is still there."""
    with contextlib.suppress(OSError):
        err.print(text, style=style, markup=False, highlight=False)


async def _up(_: argparse.Namespace, options: Options) -> int:
    platform = Platform(options)
    try:
        facts = await platform.start()
        _print_addresses(facts)
        out.print(f"[dim]stop with Ctrl-C or kill {facts.pid}[/]", highlight=False)
        await wait_for_end()
        _say("stopping")
    finally:
        await platform.stop()
    return 0


def _print_addresses(facts: Facts) -> None:
    out.print(f"platform   {facts.platform}")
    for name, url in facts.services.items():
        out.print(f"function   {url}  {name}, asleep")
    for name, values in facts.generated.items():
        for key, value in values.items():
            out.print(f"made       {name}: {key}={value}")
    for bucket, folder in facts.watches.items():
        out.print(f"watched    {folder} (bucket {bucket})")
    with contextlib.suppress(demo.JobError):  # manifests of something else
        out.print(f"key        {demo.tenant_key(facts)} (tenant {demo.TENANT})", highlight=False)
        out.print(f"drop files {demo.inbox(facts)}/<name>/ as source.* and target.*", highlight=False)


async def _run(parsed: argparse.Namespace, options: Options) -> int:
    wanted = {key: _json(value) for key, value in map(_pair, parsed.option)}
    async with connect(options, start=True) as client:
        with err.status("waiting for the job") as shown:
            async with _patience():
                done = await demo.by_http(client, parsed.source, parsed.target, wanted, parsed.out, tell=shown.update)
    out.print(f"result: {done.picture}", highlight=False, markup=False)
    return 0


async def _demo(parsed: argparse.Namespace, options: Options) -> int:
    source, target, wanted = parsed.source, parsed.target, {}
    if source is None or target is None:
        source, target = await demo.samples(options.state / "samples")
        wanted = dict(demo.SAMPLE_OPTIONS)
    async with connect(options, start=True) as client:
        since = time.time()
        with err.status("two pictures are in the inbox") as shown:
            async with _patience():
                done = await demo.by_upload(client, source, target, wanted, shown.update)
        with err.status("waiting until every function sleeps again"):
            status = await client.wait_asleep()
    out.print(tables.wake_table(status, since))
    out.print(f"result: {done.picture}", highlight=False, markup=False)
    return 0


@contextlib.asynccontextmanager
async def _patience() -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(JOB_SECONDS):
            yield
    except TimeoutError as error:
        raise demo.JobError("timeout", f"no end after {JOB_SECONDS:g} s; see the logs in the state folder") from error


async def _status(_: argparse.Namespace, options: Options) -> int:
    async with connect(options, start=False) as client:
        status = await client.status()
    out.print(tables.status_table(status), tables.queue_table(status))
    if status["jobs"]:
        out.print(tables.job_table(status))
    return 0


async def _events(parsed: argparse.Namespace, options: Options) -> int:
    async with connect(options, start=False) as client:
        events = await client.events(parsed.job)
    if parsed.job and not events:
        _say(f"nothing was delivered for {parsed.job}; a job is given by its whole id", style="red")
        return 1
    out.print(tables.event_table(events))
    return 0


async def _replay(parsed: argparse.Namespace, options: Options) -> int:
    async with connect(options, start=False) as client:
        count = await client.replay(parsed.id)
    again = "delivery is" if count == 1 else "deliveries are"
    out.print(f"{count} {again} made again" if count else "no dead letter has this id")
    return 0 if count else 1


def _parser() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--overlay", type=Path, default=Options.overlay, help="manifests (default %(default)s)")
    common.add_argument("--state", type=Path, default=Options.state, help="state folder (default %(default)s)")
    common.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="variable for every function")
    common.add_argument("--port", action="append", default=[], metavar="NAME=N", help="port of a Service or `platform`")
    common.add_argument("--idle", type=float, metavar="SECONDS", help="sleep after so long (default: the manifests')")
    common.add_argument("--max-pods", type=int, default=Options.max_pods, help="processes per function (%(default)s)")
    parser = argparse.ArgumentParser(prog="python -m infra.local", description="Knative on one machine.")
    commands = parser.add_subparsers(required=True, metavar="command")

    def add(name: str, command: Command, text: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, parents=[common], help=text, description=text)
        added.set_defaults(command=command)
        return added

    add("up", _up, "start the platform and stay")
    run = add("run", _run, "swap one picture or video through the HTTP API")
    run.add_argument("source", type=Path)
    run.add_argument("target", type=Path)
    run.add_argument("--out", type=Path, required=True, metavar="FILE", help="its ending chooses the format")
    run.add_argument("--option", action="append", default=[], metavar="KEY=VALUE", help="option of the job")
    show = add("demo", _demo, "drop two pictures into the inbox and watch the functions wake and sleep")
    show.add_argument("source", type=Path, nargs="?")
    show.add_argument("target", type=Path, nargs="?")
    show.set_defaults(idle=DEMO_IDLE_SECONDS)
    add("status", _status, "each function asleep, waking or awake, and the queues")
    add("events", _events, "what was delivered").add_argument("job", nargs="?")
    add("replay", _replay, "deliver a dead letter again").add_argument("id")
    return parser


def _options(parsed: argparse.Namespace) -> Options:
    overrides = dict(_pair(text) for text in parsed.set)
    reserved = sorted(RESERVED_VARIABLES & overrides.keys())
    if reserved:
        raise ManifestError("--set", f"{', '.join(reserved)} is reserved")
    return Options(
        overlay=parsed.overlay,
        state=parsed.state,
        overrides=overrides,
        ports={name: _port(name, number) for name, number in (_pair(text) for text in parsed.port)},
        idle=parsed.idle,
        max_pods=parsed.max_pods,
    )


def _pair(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not key or not separator:
        raise ManifestError(text, "must be KEY=VALUE")
    return key, value


def _port(name: str, number: str) -> int:
    if not number.isdigit() or int(number) > 65535:
        raise ManifestError(f"--port {name}", f"{number!r} is not a port")
    return int(number)


def _json(text: str) -> object:
    """Numbers and truth values as such, everything else as text."""
    try:
        return json.loads(text)
    except ValueError:
        return text
