"""rdma-core's tests in Python with the wheel of pyverbs, which brings a libibverbs of its own."""

from client import unpacked, wheels
from rdma_core import tests

NAME, ORIGIN, IS_SHORT = "pyverbs", "PyPI", False
# The wheel has no drivers of those devices.
KERNELS = ()
VERSION = "56.0rc1"
POOL = "r/rdma-core/rdma-core_56.1.orig.tar.gz"
DIGEST = "63ce7f2baa7242c2dbc76375dac957c420187dd27f8c5e148efc07971ee522a8"


def prepare(work):
    unpacked(work, POOL, DIGEST)
    wheels(work, f"pyverbs=={VERSION}")
    return VERSION


def cases(device):
    python = wheels(device.work, f"pyverbs=={VERSION}")
    pyverbs = next(device.work.glob("environment/lib/python*/site-packages"))
    yield from tests(device, pyverbs, unpacked(device.work, POOL, DIGEST), python)
