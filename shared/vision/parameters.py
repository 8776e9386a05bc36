"""A model's table of numbers, read with the errors that an operator needs.

Knows the catalogue's rule that numbers stand in a model's `[models.x.parameters]` table and never in a family's code.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shared.errors import ConfigError
from shared.vision.protocols import ModelAssets, Parameter

_CHANNELS = "rgb"


class Parameters:
    """Typed reads; every error is a ConfigError that names the model and the parameter."""

    def __init__(self, assets: ModelAssets) -> None:
        self._model = assets.name
        self._values = assets.parameters

    def whole(self, name: str) -> int:
        """A whole number above 0."""
        value = self._value(name)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise self._error(name, "a whole number above 0")
        return value

    def text(self, name: str) -> str:
        value = self._value(name)
        if not isinstance(value, str):
            raise self._error(name, "a text")
        return value

    def choice(self, name: str, allowed: tuple[str, ...]) -> str:
        value = self.text(name)
        if value not in allowed:
            raise self._error(name, f"one of {', '.join(allowed)}")
        return value

    def flag(self, name: str, default: bool = False) -> bool:
        value = self._values.get(name, default)
        if not isinstance(value, bool):
            raise self._error(name, "true or false")
        return value

    def channels(self, name: str) -> NDArray[np.float64]:
        """[3], red, green, blue: `name`, or `name`_r, `name`_g and `name`_b where they differ."""
        if name in self._values:
            return np.full(3, self.number(name))
        return np.array([self.number(f"{name}_{channel}") for channel in _CHANNELS])

    def number(self, name: str) -> float:
        value = self._value(name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._error(name, "a number")
        return float(value)

    def _value(self, name: str) -> Parameter:
        if name not in self._values:
            raise ConfigError(f"The model {self._model} has no parameter {name!r}.")
        return self._values[name]

    def _error(self, name: str, wanted: str) -> ConfigError:
        return ConfigError(f"The model {self._model}: {name} must be {wanted}, not {self._values[name]!r}.")
