"""The tests of the crate ruapc-rdma."""

from client import crate, libtest

NAME, ORIGIN, IS_SHORT = "ruapc-rdma", "crates.io", False
VERSION = "0.2.0-alpha.7"


def prepare(work):
    crate(work, NAME, VERSION)
    return VERSION


def cases(device):
    folder, programs = crate(device.work, NAME, VERSION)
    yield from libtest(device, programs, folder=folder)
