"""What a folder must say to be a stage."""

from __future__ import annotations

import pytest

from shared.errors import ConfigError
from shared.events.payloads import Failure, Job, Rejection, Result
from shared.serving import stage
from shared.serving.app import create


def test_the_payload_is_read_from_the_first_parameter() -> None:
    assert stage.load("relay", "tests.services").payloads == (Job,)
    assert stage.load("mixed", "tests.services").payloads == (Result, Rejection, Failure)


def test_a_stage_that_takes_raw_events_is_a_door() -> None:
    loaded = stage.load("door", "tests.services")
    assert loaded.door is not None
    assert loaded.handle is None


def test_setup_is_optional() -> None:
    assert stage.load("relay", "tests.services").setup is None
    assert stage.load("heavy", "tests.services").setup is not None


def test_a_stage_that_does_not_say_what_it_takes_is_refused() -> None:
    with pytest.raises(ConfigError, match="first parameter"):
        stage.load("untyped", "tests.services")


def test_a_setting_that_cannot_work_stops_the_start() -> None:
    with pytest.raises(ConfigError, match="WAKESWAP_CONCURRENCY"):
        create("relay", "tests.services", environ={"WAKESWAP_CONCURRENCY": "none"})
