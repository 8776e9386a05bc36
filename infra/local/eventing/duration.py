"""ISO-8601 durations as Kubernetes manifests write them (PT0.5S, PT5M). Knows nothing else."""

import re

_DURATION = re.compile(
    r"P(?:(?P<weeks>\d+)W)?(?:(?P<days>\d+)D)?"
    r"(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:[.,]\d+)?)S)?)?"
)
_SECONDS = {"weeks": 604_800.0, "days": 86_400.0, "hours": 3_600.0, "minutes": 60.0, "seconds": 1.0}


def parse_duration(text: str) -> float:
    """Seconds of an ISO-8601 duration; ValueError for anything else, also for years and months (no fixed length)."""
    match = _DURATION.fullmatch(text)
    parts = {name: value for name, value in match.groupdict().items() if value} if match else {}
    if not parts or text.endswith("T"):
        raise ValueError(f"{text!r} is not an ISO-8601 duration such as PT0.5S or PT5M")
    return sum(float(value.replace(",", ".")) * _SECONDS[name] for name, value in parts.items())
