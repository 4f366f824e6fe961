"""Runs rdma-core's own tests in Python, and prints the outcome of each as a line of JSON.

    rdma_core_tests.py PYVERBS SOURCES WHICH DEVICE [ADDRESS]

PYVERBS is the folder with the package, SOURCES that of rdma-core. WHICH is `rdmacm` for the tests of that
file, `placement` for flushes and atomic writes, or `other`. ADDRESS is that of a simulated device.
"""

import glob
import importlib
import json
import os
import re
import sys
import types
import unittest
import warnings

PYVERBS, SOURCES, WHICH, DEVICE = sys.argv[1:5]
ADDRESS = "".join(sys.argv[5:])
sys.argv[1:] = ["--dev", DEVICE]
warnings.simplefilter("ignore")
# The sources have a `pyverbs` too, which is not built.
sys.path[:0] = [PYVERBS]
import pyverbs  # noqa: E402, F401


class Absent(types.ModuleType):
    """A module that cannot be imported. Each of its names is a class."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


# The modules of a wheel may want newer libraries of vendors than it brings.
for vendor in glob.glob(os.path.join(PYVERBS, "pyverbs/providers/*/")):
    files = glob.glob(os.path.join(vendor, "*.so"))
    modules = [os.path.relpath(file, PYVERBS).split(".")[0].replace("/", ".") for file in files]
    try:
        for module in modules:
            importlib.import_module(module)
    except ImportError:
        sys.modules.update({module: Absent(module) for module in modules})

sys.path[:0] = [SOURCES, os.path.join(SOURCES, "tests")]
from args_parser import parser  # noqa: E402

parser.parse_args()
import tests  # noqa: E402
from tests import base, test_device, utils  # noqa: E402

# Why a test may be skipped: part of what it says, part of its file's name, and the reason in words.
# Any other reason is a failure.
WHY = [
    ("CC_DMA_BOUNCE", "buf", "a confidential guest"),
    ("DMA Handle", "dmah", "DMA handles"),
    ("PHC", "phc_timestamp", "a PTP clock"),
    ("Extended CQ", "tag_matching", "tag matching"),
    ("huge pages", "", "huge pages of the machine"),
    ("/dev/dri", "", "a GPU that exports dma-bufs"),
    ("dmabuf", "", "descriptors of device memory"),
    ("QP type 8|Raw Packet", "", "raw packets, flow steering"),
    ("parent's context", "device", "a child of fork with its parent's context"),
]


class Outcomes(unittest.TestResult):
    """Prints the outcomes."""

    def addSuccess(self, test):
        tell(test, "passed")

    def addSkip(self, test, reason):
        for part, of, why in WHY:
            if re.search(part, reason) and re.search(of, file_of(test)):
                tell(test, "skipped", why)
                return
        tell(test, "failed" if ADDRESS else "skipped", f"skipped: {reason}")

    def addFailure(self, test, err):
        tell(test, "failed", self._exc_info_to_string(err, test))

    addError = addFailure


def tell(test, kind, why=""):
    name = test.id().removeprefix(f"{type(test).__module__}.")
    print(json.dumps([f"{file_of(test)}: {name}", kind, why]), flush=True)


def file_of(test):
    return type(test).__module__.removeprefix("tests.test_")


def suite():
    """The tests of any device, not those of a vendor's."""
    flat = [unittest.defaultTestLoader.loadTestsFromModule(tests)]
    while any(isinstance(one, unittest.TestSuite) for one in flat):
        flat = [test for one in flat for test in (one if isinstance(one, unittest.TestSuite) else [one])]
    mine = [test for test in flat if not re.match("mlx5|efa|cuda", file_of(test))]
    return unittest.TestSuite(test for test in mine if group_of(test) == WHICH)


def group_of(test):
    if file_of(test) == "rdmacm":
        return "rdmacm"
    return "placement" if re.search("flush|atomic_write", test.id()) else "other"


def no_huge_pages():
    raise unittest.SkipTest("huge pages are not looked for")


def of_parent(_):
    raise unittest.SkipTest("a child has a fabric of its own, and cannot use its parent's context")


def main():
    # What depends on the machine and the user.
    utils.huge_pages_supported = no_huge_pages
    utils.is_root = lambda: True
    if ADDRESS:
        # What the tests ask other programs and the kernel's files for. Simulated devices belong to
        # no network interface but may have its address, and have the P_Key that every port has.
        address = (ADDRESS, "00:00:00:00:00:00") if WHICH == "rdmacm" else (None, None)
        base.RDMATestCase._get_ip_mac = lambda test, *place: test.args.append([*place, *address])
        utils.get_pkey_from_kernel = lambda device, port, index: 0xFFFF
        test_device.DMTest.test_multi_process_alloc_dm = of_parent
    suite().run(Outcomes())


main()
