"""The tests of the crate ruapc-rdma."""

from client import came_out, crate, libtest

NAME, ORIGIN, IS_SHORT = "ruapc-rdma", "crates.io", False
# They take all devices, or the first.
KERNELS = ("rxe",)
VERSION = "0.2.0-alpha.7"
# These fail if a GID can only be had from libibverbs, and not from the kernel.
BY_IOCTL = {
    "verbs::context::gid::backend::tests::ioctl_gid_entry_does_not_need_sysfs",
    "verbs::context::gid::tests::gid_table_matches_per_index_queries",
}


def prepare(work):
    crate(work, NAME, VERSION)
    return VERSION


def cases(device):
    folder, programs = crate(device.work, NAME, VERSION)
    for test, case in libtest(device, programs, folder=folder):
        without = test.split(": ")[1] in BY_IOCTL and not device.kernel
        yield test, came_out("skipped", "it calls the kernel's uverbs by ioctl, past libibverbs") if without else case
