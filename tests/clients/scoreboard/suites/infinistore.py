"""InfiniStore, a server that keeps blocks by keys, and a client: what it wrote comes back, each byte compared. Writes that
do not arrive are not tried: the server notices, and does not notify its client, which waits forever."""

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
