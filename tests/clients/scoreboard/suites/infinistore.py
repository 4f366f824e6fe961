"""InfiniStore, a server that keeps blocks by keys, and a client: what it wrote comes back, each byte compared. If writes do
not arrive, the server notices and tells nobody: its client waits for ever, so that is not tried."""

import engines
from client import wheels

NAME, ORIGIN, IS_SHORT = "infinistore", "PyPI", False
VERSION = "0.2.35"


def prepare(work):
    python(work)
    return VERSION


def python(work):
    # It requires PyTorch only for its benchmark.
    return wheels(work, "--no-deps", f"infinistore=={VERSION}", "uvloop==0.21.0", "numpy==2.4.6")


def cases(device):
    yield from engines.cases(device, "infinistore", python(device.work), is_silence_reported=False)
