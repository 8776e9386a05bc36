"""The floor of a wake: the smallest flask application, for a bare gunicorn beside ours in bench_wake."""

from __future__ import annotations

from flask import Flask

app = Flask("hello")


@app.post("/")
def hello() -> str:
    return "hello"
