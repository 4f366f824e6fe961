"""rdma-core's tests in Python, of the release that Debian 12 has, with Debian's pyverbs."""

import gzip
import shutil
from pathlib import Path

from client import debian
from rdma_core import tests

NAME, ORIGIN, IS_SHORT = "python3-pyverbs", "Debian", True
MISTAKES = {
    "cq: CQTest.test_resize_cq": "it destroys an address handle before it polls the sends that use it (mended since)",
}
INSTALLED = Path("/usr/share/doc/rdma-core/tests")


def prepare(work):
    version = debian("python3-pyverbs")
    shutil.copytree(INSTALLED, work / "tests", dirs_exist_ok=True)
    for file in (work / "tests").glob("*.py.gz"):
        file.with_suffix("").write_bytes(gzip.decompress(file.read_bytes()))
    return version


def cases(device):
    yield from tests(device, "/usr/lib/python3/dist-packages", device.work, mistakes=MISTAKES)
