"""Write the alert rules and dashboards of knative/components/monitoring: `python -m infra.monitoring`.

With `--check` it writes nothing and fails when one is stale.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from infra.monitoring.alerts import ALERTS, RUNBOOK, Alert
from infra.monitoring.dashboards import DASHBOARDS, grafana

FOLDER = Path(__file__).resolve().parents[2] / "knative/components/monitoring"
MADE = "# Made by `python -m infra.monitoring`; change infra/monitoring/alerts.py, not this file.\n"
_HEAD = """apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: wakeswap
  labels: {wakeswap.dev/once: "true"}
spec:
  groups:
    - name: wakeswap
      rules:
"""


def main() -> int:
    stale = [name for name, text in files().items() if not _is(FOLDER / name, text)]
    if "--check" in sys.argv:
        print(f"stale: {', '.join(stale)}; run: python -m infra.monitoring" if stale else "fresh")
        return int(bool(stale))
    for name in stale:
        (FOLDER / name).parent.mkdir(parents=True, exist_ok=True)
        (FOLDER / name).write_text(files()[name])
    print("written: " + ", ".join(stale))
    return 0


def files() -> dict[str, str]:
    """Text by path below the component."""
    made = {f"dashboards/{one.uid}.json": json.dumps(grafana(one), indent=2) + "\n" for one in DASHBOARDS}
    return {"rules.yaml": MADE + _HEAD + "".join(map(_rule, ALERTS)), **made}


def _rule(alert: Alert) -> str:
    quoted = json.dumps(alert.summary)  # JSON's strings are YAML's
    lines = (
        f"- alert: {alert.name}",
        "  expr: |-",
        f"    {alert.expression}",
        f"  for: {alert.lasts}",
        f"  labels: {{severity: {alert.severity}}}",
        "  annotations:",
        f"    summary: {quoted}",
        f"    runbook_url: {RUNBOOK}#{alert.name.lower()}",
    )
    return "".join(f"        {line}\n" for line in lines)


def _is(path: Path, text: str) -> bool:
    return path.exists() and path.read_text() == text


if __name__ == "__main__":
    sys.exit(main())
