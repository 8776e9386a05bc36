"""Places a test fetches from: a real HTTP server that can be slow, busy or cut off, small specs, small networks."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from shared.models.spec import FileSet, FileSpec

DATA = Path(__file__).resolve().parents[2] / "data" / "model"


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def file_spec(data: bytes, *sources: str, part: str = "model", name: str = "model.bin") -> FileSpec:
    return FileSpec(part=part, name=name, size=len(data), sha256=digest(data), sources=sources)


def file_set(*files: FileSpec, name: str = "sample") -> FileSet:
    return FileSet(name=name, licence="none", files=files)


def network(*, ir: int = 8, opset: int = 17, location: str = "") -> bytes:
    """y = x @ w with 16 x 16 weights, kept in the file or said to be at `location`."""
    weights = numpy_helper.from_array(np.arange(256, dtype=np.float32).reshape(16, 16), "w")
    if location:
        weights.ClearField("raw_data")
        weights.data_location = TensorProto.EXTERNAL
        for key, value in (("location", location), ("offset", "0"), ("length", "1024")):
            entry = weights.external_data.add()
            entry.key, entry.value = key, value
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 16])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 16])],
        [weights],
    )
    model: onnx.ModelProto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = ir
    return bytes(model.SerializeToString())


class Server:
    """Serves `data` at every path; `script` is what the next requests get instead (a status, or "cut")."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.script: list[int | str] = []
        self.requests: list[str] = []
        self.sent = 0
        self.pause = 0.0
        """Seconds between two 16 KiB pieces."""
        self.url = ""


@contextmanager
def serving(data: bytes) -> Iterator[Server]:
    state = Server(data)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state.requests.append(self.path)
            answer = state.script.pop(0) if state.script else 200
            self.send_response(200 if isinstance(answer, str) else answer)
            self.send_header("Content-Length", str(len(state.data)) if answer in (200, "cut") else "0")
            self.end_headers()
            if answer in (200, "cut"):
                self._send(state.data if answer == 200 else state.data[: len(state.data) // 2])

        def _send(self, body: bytes) -> None:
            try:
                for start in range(0, len(body), 16384):
                    piece = body[start : start + 16384]
                    self.wfile.write(piece)
                    state.sent += len(piece)
                    time.sleep(state.pause)
            except (BrokenPipeError, ConnectionResetError):
                pass  # the killed client of a test

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_address[1]}/model"
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
