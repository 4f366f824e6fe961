"""Mooncake's transfer engine, in two processes that find each other by its own handshake: their memory, there and back,
each byte compared."""

import engines
from client import wheels

NAME, ORIGIN, IS_SHORT = "mooncake-transfer-engine", "PyPI", False
VERSION = "0.3.13"


def prepare(work):
    python(work)
    return VERSION


def python(work):
    return wheels(work, "--no-deps", f"mooncake-transfer-engine-non-cuda=={VERSION}")


def cases(device):
    yield from engines.cases(device, "mooncake", python(device.work))
