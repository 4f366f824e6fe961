"""Runs rdma-core's own tests, and compares what came of them with a table in a text of Markdown."""

import os
import re
import sys
import unittest
import warnings
from collections import Counter, defaultdict

PYVERBS, SOURCES, TEXT, RDMACM, *NAMES = sys.argv[1:]
sys.argv[1:] = []
# The sources have a `pyverbs` too, which is not built.
sys.path[:0] = [PYVERBS, SOURCES, os.path.join(SOURCES, "tests")]
warnings.simplefilter("ignore")

from args_parser import parser  # noqa: E402

parser.parse_args()
import tests  # noqa: E402
from tests import base, test_device, utils  # noqa: E402

# Why a test may be skipped: part of what it says, and of its file's name, and what that means. Any
# other reason is a failure.
WHY = [
    ("", "mlx5|efa|cuda", "a vendor's device"),
    ("CC_DMA_BOUNCE", "buf", "a confidential guest"),
    ("DMA Handle|ODP", "dmah", "DMA handles"),
    ("PHC", "phc_timestamp", "a PTP clock"),
    ("Extended CQ", "tag_matching", "tag matching"),
    ("ODP|huge pages|XRCD", "odp", "on-demand paging"),
    ("huge pages", "", "huge pages of the machine"),
    ("dmabuf", "", "memory of other devices (dma-buf)"),
    ("QP type 8|Raw Packet", "", "raw packets, flow steering"),
    ("Extended QP|FLUSH_GLOBAL", "qpex", "flush, atomic write"),
    ("parent's context", "device", "a child of fork with its parent's context"),
]
BEGIN, END = "<!-- made by tests/clients/rdma-core/run -->\n", "<!-- end -->\n"


class Outcomes(unittest.TestResult):
    """Outcomes by file."""

    def __init__(self):
        super().__init__()
        self.passed = Counter()
        self.skips = defaultdict(Counter)
        self.unexplained = []

    @staticmethod
    def file_of(test):
        name = type(test).__module__.removeprefix("tests.test_")
        return "mlx5, efa, cuda" if re.match("mlx5|efa|cuda", name) else name

    def addSuccess(self, test):
        self.passed[self.file_of(test)] += 1

    def addSkip(self, test, reason):
        file = self.file_of(test)
        for part, of, why in WHY:
            if re.search(part, reason) and re.search(of, file):
                self.skips[file][why] += 1
                return
        self.unexplained.append(f"{test.id()}: skipped: {reason}")

    def table(self):
        rows = ["| tests | passed | skipped |", "|---|---|---|"]
        for file in sorted({*self.passed, *self.skips}):
            skips = self.skips[file].items()
            why = ", ".join(f"{count} {why}" for why, count in sorted(skips))
            rows.append(f"| {file} | {self.passed[file]} | {why} |")
        skipped = sum(self.skips.values(), Counter()).total()
        rows.append(f"| all | {self.passed.total()} | {skipped} |")
        return "".join(f"{row}\n" for row in rows)


def suite():
    """All of them, or those with one of the names: where there are addresses those of rdma_cm, else all others."""
    flat = [unittest.defaultTestLoader.loadTestsFromModule(tests)]
    while any(isinstance(one, unittest.TestSuite) for one in flat):
        flat = [test for one in flat for test in (one if isinstance(one, unittest.TestSuite) else [one])]
    by_rdma_cm = "." in RDMACM
    return unittest.TestSuite(
        test
        for test in flat
        if (Outcomes.file_of(test) == "rdmacm") == by_rdma_cm
        and (not NAMES or any(name in test.id() for name in NAMES))
    )


def no_huge_pages():
    raise unittest.SkipTest("huge pages are not looked for")


def of_parent(_):
    raise unittest.SkipTest("a child has a fabric of its own, and cannot use its parent's context")


def main():
    # What the tests ask other programs and the kernel's files for: simulated devices belong to no
    # network interface but may have its address, and have the P_Key that every port has.
    base.RDMATestCase.get_net_name = staticmethod(lambda dev, port=None: None)
    base.RDMACMBaseTest.get_net_name = staticmethod(lambda dev, port=None: dev)
    base.RDMACMBaseTest.get_ip_mac_address = staticmethod(lambda name: (RDMACM, "00:00:00:00:00:00"))
    utils.get_pkey_from_kernel = lambda device, port, index: 0xFFFF
    # What depends on the machine and the user, so that the table does not.
    utils.huge_pages_supported = no_huge_pages
    utils.is_root = lambda: True
    test_device.DMTest.test_multi_process_alloc_dm = of_parent
    outcomes = Outcomes()
    suite().run(outcomes)
    if "." not in RDMACM:
        outcomes.passed["rdmacm"] = int(RDMACM)
    table = outcomes.table()
    print(table, end="", file=sys.stderr)
    bad = [f"{test.id()}:\n{trace}" for test, trace in outcomes.failures + outcomes.errors]
    bad += outcomes.unexplained
    if bad:
        sys.exit("\n".join(bad))
    if "." in RDMACM:
        print(outcomes.passed["rdmacm"])
        return
    if NAMES:
        return
    unused = {why for _, _, why in WHY} - set().union(*outcomes.skips.values())
    if unused:
        sys.exit(f"reasons that no test has any more: {', '.join(sorted(unused))}")
    with open(TEXT, encoding="utf-8") as file:
        before, _, rest = file.read().partition(BEGIN)
    known, end, after = rest.partition(END)
    assert end, f"{TEXT} has no place for the table"
    if os.environ.get("VERBSIM_BLESS"):
        with open(TEXT, "w", encoding="utf-8") as file:
            file.write(before + BEGIN + table + END + after)
    elif known != table:
        sys.exit(f"{TEXT} has another table; VERBSIM_BLESS=1 writes it anew")


main()
