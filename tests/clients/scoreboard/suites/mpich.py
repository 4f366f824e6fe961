"""MPICH over UCX: the program of `openmpi-bin`. UCX runs without its cache of registrations: with it, UCX
[unmaps memory](drop-in.md#memory) into which datagrams may still arrive."""

from functools import partial

from client import compiled, debian, ucx

NAME, ORIGIN, IS_SHORT = "mpich", "Debian", True
# UCX gives its peers up where all is as slow as in the virtual machine.
KERNELS = ()


def prepare(work):
    version = debian("mpich", "libmpich-dev")
    compiled(work, "mpi.c", compiler="mpicc.mpich")
    return version


def cases(device):
    for count in (2, 4):
        for transport in ("rc_v", "ud_v"):
            yield f"-n {count}, {transport}", partial(ranks, device, count, transport)


def ranks(device, count, transport):
    # Ranks of one machine would otherwise share memory.
    env = ucx(device, transport) | {"MPIR_CVAR_NOLOCAL": "1"}
    text = device.alone(["mpiexec.mpich", "-n", count, device.work / "mpi"], env=env)
    assert "every byte is right" in text, text
