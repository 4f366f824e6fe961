"""DLSlime, the transfer engine of LMDeploy, in two processes: their memory, there and back, each byte compared. It asks
for a `min_rnr_timer` of 32, which profile `spec` refuses."""

import engines
from client import wheels

NAME, ORIGIN, IS_SHORT = "dlslime", "PyPI", False
VERSION = "0.1.23"


def prepare(work):
    python(work)
    return VERSION


def python(work):
    return wheels(work, "--no-deps", f"dlslime=={VERSION}")


def cases(device):
    yield from engines.cases(device, "dlslime", python(device.work), profile="mlx5", profiles=["rxe"])
