"""gunicorn's logs in our form: set `logger_class = "shared.telemetry.access.GunicornLogger"`.

Everything goes through the root logger that `shared.telemetry.logs.configure` set up. An access line holds no
header, no query, and of the path only what could be ours; health probes are logged at DEBUG, since they come every few
seconds. Imported by gunicorn only.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING

from gunicorn.config import Config
from gunicorn.glogging import Logger

if TYPE_CHECKING:
    from gunicorn.http.wsgi import Response

_PROBES = ("/health/", "/metrics")
_PLAIN = re.compile(r"[A-Za-z0-9._-]{0,64}")
"""What a segment of our paths looks like; callers put anything into others, names and keys among it."""


class GunicornLogger(Logger):
    def setup(self, cfg: Config) -> None:
        """Keep gunicorn's loggers without handlers of their own; called again on every reload."""
        self.cfg = cfg
        for log in (self.error_log, self.access_log):
            log.handlers.clear()
            log.propagate = True
        self.access_log.setLevel(logging.NOTSET)
        self.error_log.setLevel(logging.INFO)  # below it says every path as it was sent

    @property
    def access_log_enabled(self) -> bool:
        return True

    def access(
        self,
        resp: Response,
        req: object,  # noqa: ARG002 - gunicorn passes it
        environ: Mapping[str, str],
        request_time: timedelta,
    ) -> None:
        # After an error gunicorn builds a smaller environment, without PATH_INFO.
        path = environ.get("PATH_INFO") or environ.get("RAW_URI", "").partition("?")[0]
        method = environ.get("REQUEST_METHOD", "")
        status = str(resp.status).partition(" ")[0]
        facts = {"status": int(status), "seconds": round(request_time.total_seconds(), 4), "sent": resp.sent}
        level = logging.DEBUG if path.startswith(_PROBES) else logging.INFO
        self.access_log.log(level, "%s %s %s", method, _shown(path), status, extra=facts)


def _shown(path: str) -> str:
    return "/".join(part if _PLAIN.fullmatch(part) else "[other]" for part in path.split("/"))
