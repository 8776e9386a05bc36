"""Which moderator and reader an installation has: by its settings, by tables of its own, or none at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from shared.errors import ConfigError
from shared.models import build
from shared.settings import Settings
from tests.standins.moderators import catalogue


def chosen(**environ: str) -> tuple[str, str, set[str]]:
    """Moderator, reader, and what publish needs at hand."""
    found = build.chosen(Settings.from_environment(environ).models)
    names = {spec.name for spec in found.needed_by("publish")}
    assert names == {spec.name for spec in found.needed_by("moderate")}
    return found.roles.get("moderator", ""), found.roles.get("reader", ""), names


def test_both_by_default() -> None:
    assert chosen() == ("open_nsfw", "pp_ocr_v6_small", {"open_nsfw", "pp_ocr_v6_small"})


def test_off_needs_and_fetches_neither() -> None:
    assert chosen(WAKESWAP_MODERATION="off") == ("", "", set())


def test_without_a_reader_there_is_still_a_moderator() -> None:
    assert chosen(WAKESWAP_READER="none") == ("open_nsfw", "", {"open_nsfw"})


def test_a_table_of_ones_own_is_chosen_by_the_setting(tmp_path: Path) -> None:
    tables = {"WAKESWAP_CATALOGUE": str(catalogue(tmp_path))}
    assert chosen(**tables)[0] == "open_nsfw"
    assert chosen(**tables, WAKESWAP_MODERATOR="brightness")[0] == "brightness"
    with pytest.raises(ConfigError, match="brightness"):
        chosen(WAKESWAP_MODERATOR="brightness")


@pytest.mark.parametrize(
    ("environ", "says"),
    [
        ({"WAKESWAP_MODERATION": "false"}, "on, off"),
        ({"WAKESWAP_MODERATION": "none"}, "on, off"),
        ({"WAKESWAP_MODERATOR": "none"}, "no moderator that is called 'none'"),
        ({"WAKESWAP_MODERATOR": "pp_ocr_v6_small"}, "no moderator"),
        ({"WAKESWAP_READER": "open_nsfw"}, "no reader"),
        ({"WAKESWAP_CATALOGUE": "/no/such/folder"}, "/no/such/folder"),
    ],
)
def test_no_other_word_turns_moderation_off(environ: dict[str, str], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        chosen(**environ)


def test_a_table_cannot_stand_in_for_one_of_the_products(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="open_nsfw"):
        chosen(WAKESWAP_CATALOGUE=str(catalogue(tmp_path, "open_nsfw")))
