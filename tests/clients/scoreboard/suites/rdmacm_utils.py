"""The examples of librdmacm."""

from functools import partial

from client import OWN_ADDRESSES, cm, debian, quietly, says

NAME, ORIGIN, IS_SHORT = "rdmacm-utils", "Debian", True


def prepare(work):
    return debian("rdmacm-utils")


def cases(device):
    yield from examples(device)
    # Its server has no end.
    client = f"cmtime -c 100 -s {device.address}"
    yield "cmtime -c 100", partial(device.pair, "cmtime -c 100", client, cm(7471), stays=True)


def examples(device):
    """Those whose options are the same in each version."""
    address = device.address
    pair = partial(partial, device.pair)
    rping = cm(7174)
    yield "rping -V", pair("rping -s -C 100 -V", f"rping -c -a {address} -C 100 -V", rping)
    yield "rping -P", pair("rping -s -P", f"rping -c -a {address} -C 100 -V", rping, stays=True)
    if not device.kernel:
        yield "rping -a localhost", pair("rping -s -C 100 -V", "rping -c -a localhost -C 100 -V", rping)
        yield "rping over IPv6", pair("rping -s -a :: -C 100 -V", "rping -c -a ::1 -C 100 -V", rping)
        own = OWN_ADDRESSES[0]
        if own in quietly("ip", "-oneline", "address"):
            client = f"rping -c -a {own} -C 100 -V"
            yield "rping to an address of the machine", pair("rping -s -C 100 -V", client, rping)
    ucma = cm(7471)
    for program in ("ucmatose", "ucmatose -c 100", "ucmatose -c 100 -m"):
        yield program, pair(program, f"{program} -s {address}", ucma)
    yield "rdma_client", pair("rdma_server", f"rdma_client -s {address}", ucma)
    for program in ("udaddy", "udaddy -c 10"):
        yield program, pair(program, f"{program} -s {address}", cm(7174))
    group = "mckey -m 239.1.2.3 -C 10" + (f" -b {address}" if device.kernel else "")
    yield "mckey", pair(f"stdbuf -oL {group}", f"{group} -s", says("joined"))
