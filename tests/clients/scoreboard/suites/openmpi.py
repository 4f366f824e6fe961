"""Open MPI over UCX: four ranks, each byte of messages of many sizes between all pairs, sums, exchanges
of all with all."""

from functools import partial

from client import compiled, debian, ucx

NAME, ORIGIN, IS_SHORT = "openmpi-bin", "Debian", True
# UCX gives its peers up where all is as slow as in the virtual machine.
KERNELS = ()
LOSS = '[[rule]]\nkind = "packet"\neffect = "drop"\nper_million = 10000\n'


def prepare(work):
    version = debian("openmpi-bin", "libopenmpi-dev")
    compiled(work, "mpi.c", compiler="mpicc.openmpi")
    return version


def cases(device):
    faults = device.work / "loss.toml"
    faults.write_text(LOSS)
    variants = {"": [], " on one address": ["--fabric", "127.77.77.2"], " with 1 % loss": ["--faults", faults]}
    for name, options in variants.items():
        for transport in ("rc_v", "ud_v"):
            yield f"-np 4, {transport}{name}", partial(ranks, device, transport, options)


def ranks(device, transport, options):
    program = "mpirun.openmpi --allow-run-as-root --oversubscribe --mca pml ucx --mca btl ^openib -np 4".split()
    env = ucx(device, transport)
    text = device.alone([*program, device.work / "mpi"], options, env=env)
    assert "every byte is right" in text, text
