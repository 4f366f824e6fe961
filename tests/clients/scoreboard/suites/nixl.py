"""NVIDIA's transfer library NIXL, on the UCX that its wheel brings: memory of two processes, there and back, each byte
compared."""

import engines
from client import wheels

NAME, ORIGIN, IS_SHORT = "nixl-cu12", "PyPI", False
VERSION = "1.5.1"


def prepare(work):
    python(work)
    return VERSION


def python(work):
    # What it requires besides is for GPUs.
    return wheels(work, "--no-deps", f"nixl-cu12=={VERSION}", "numpy==2.4.6")


def cases(device):
    yield from engines.cases(device, "nixl", python(device.work))
