"""librpma, by a program of ours: writes, flushes, reads, atomic writes and messages, with each byte
compared."""

from functools import partial

from client import OWN_ADDRESSES, Skipped, cm, compiled, debian, quietly

NAME, ORIGIN, IS_SHORT = "librpma0", "Debian", True
PORT = 7204
LOSS = '[[rule]]\nkind = "packet"\neffect = "drop"\nper_million = 10000\n'


def prepare(work):
    version = debian("librpma0", "librpma-dev")
    compiled(work, "rpma.c", "-lrpma")
    return version


def cases(device):
    faults = device.work / "loss.toml"
    faults.write_text(LOSS)
    for name, options in {"": [], " with 1 % loss": ["--faults", faults]}.items():
        yield f"write, flush, read{name}", partial(pair, device, options)


def pair(device, options):
    # librpma binds an id and uses its device, and Linux gives no device to a loopback address.
    address = device.address if device.kernel else OWN_ADDRESSES[0]
    if address not in quietly("ip", "-oneline", "address"):
        raise Skipped("the machine has no such address: root gets a network that has")
    program = [device.work / "rpma", address, PORT]
    device.pair([*program, "server"], [*program, "client"], cm(PORT), options)
