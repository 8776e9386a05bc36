"""A broker alone in a process, for tests that kill it: `python -m tests.local.broker_process DB PORT TRIGGERS.json`.

The topology is a JSON list of documents; destinations are plain URLs.
"""

import asyncio
import json
import signal
import sys
from pathlib import Path

from aiohttp import web

from infra.local.eventing.runtime import BrokerRuntime
from infra.local.eventing.spec import Destination, parse_broker, parse_trigger


def resolve(destination: Destination) -> str | None:
    return destination.url() if destination.ref is None else None


async def main(database: str, port: str, topology: str) -> None:
    documents = json.loads(Path(topology).read_text())
    brokers = [parse_broker(document) for document in documents if document["kind"] == "Broker"]
    triggers = [parse_trigger(document) for document in documents if document["kind"] == "Trigger"]
    runtime = BrokerRuntime(Path(database), brokers, triggers, resolve, per_trigger=16)
    await runtime.start()
    app = web.Application()
    app.add_routes(runtime.app_routes())
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", int(port)).start()
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    await stopped.wait()
    await runner.cleanup()
    await runtime.stop()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
