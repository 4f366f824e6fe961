"""The tests of the crate sideway, which opens libibverbs when it runs."""

from client import crate, libtest

NAME, ORIGIN, IS_SHORT = "sideway", "crates.io", False
# They take the first device.
KERNELS = ("rxe",)
VERSION = "0.4.3"


def prepare(work):
    crate(work, NAME, VERSION)
    return VERSION


def cases(device):
    folder, programs = crate(device.work, NAME, VERSION)
    # That one calls the compiler.
    programs = [program for program in programs if "/compiletest-" not in program]
    yield from libtest(device, programs, folder=folder)
