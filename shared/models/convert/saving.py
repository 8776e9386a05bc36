"""The last step of every conversion: check the graph, then write bytes that depend on nothing but the graph."""

from __future__ import annotations

from pathlib import Path

import onnx

from shared.errors import ModelInvalidError


def save(model: onnx.ModelProto, target: Path) -> None:
    """Raises ModelInvalidError when the graph is not valid ONNX."""
    try:
        onnx.checker.check_model(model, full_check=True)
    except onnx.checker.ValidationError as error:
        raise ModelInvalidError(f"The conversion made no valid graph: {str(error).splitlines()[0]}") from error
    target.write_bytes(model.SerializeToString(deterministic=True))
