"""The pingpongs of rdma-core, whose peers meet over TCP."""

from functools import partial

from client import debian, tcp

NAME, ORIGIN, IS_SHORT = "ibverbs-utils", "Debian", True
PORT = 18515


def prepare(work):
    return debian("ibverbs-utils")


def cases(device):
    tests = [f"ibv_{kind}_pingpong{events}" for kind in ("rc", "uc", "ud", "srq") for events in ("", " -e")]
    tests.append("ibv_xsrq_pingpong")
    for test in tests:
        yield test, partial(pair, device, f"{test} -g {device.gid_index}")
    yield "ibv_rc_pingpong -g 1", partial(pair, device, "ibv_rc_pingpong -g 1")
    infiniband = ["--link-layer", "infiniband"]
    for kind in ("rc", "uc", "ud"):
        yield f"ibv_{kind}_pingpong by LID", partial(pair, device, f"ibv_{kind}_pingpong", infiniband)
    shared = ["--fabric", "127.77.77.1"]
    yield "ibv_rc_pingpong -e on one address", partial(pair, device, "ibv_rc_pingpong -g 0 -e", shared)


def pair(device, program, options=()):
    device.skip_iwarp()
    device.pair(f"{program} -d {device.name}", f"{program} -d {device.name} 127.0.0.1", tcp(PORT), options)
