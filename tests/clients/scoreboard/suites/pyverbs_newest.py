"""rdma-core's tests in Python, of the newest release, with its pyverbs, which is built here."""

import re

from client import quietly, unpacked
from rdma_core import tests

NAME, ORIGIN, IS_SHORT = "rdma-core tests", "Debian sid", True
# Its drivers of those devices are not installed.
KERNELS = ()
VERSION = "65.0"
POOL = f"r/rdma-core/rdma-core_{VERSION}.orig.tar.gz"
DIGEST = "f6ba3d8b2c4aa334c5c883c1ad0772de339011123cff4fb1db32ae7a443fb7ca"


def prepare(work):
    sources, build, built = unpacked(work, POOL, DIGEST), work / "build", work / "built"
    if not built.exists():
        options = "IN_PLACE=1 NO_MAN_PAGES=1 ENABLE_STATIC=0 CMAKE_BUILD_TYPE=Debug CMAKE_C_FLAGS_DEBUG=-O0"
        options = [f"-D{option}" for option in [*options.split(), "PYTHON_EXECUTABLE=/usr/bin/python3"]]
        quietly("cmake", "-S", sources, "-B", build, "-G", "Ninja", *options)
        targets = quietly("ninja", "-C", build, "-t", "targets", "all")
        quietly("ninja", "-C", build, *re.findall(r"^(python.*\.so): ", targets, re.MULTILINE))
        built.touch()
    return VERSION


def cases(device):
    sources = unpacked(device.work, POOL, DIGEST)
    yield from tests(device, device.work / "build/python", sources)
