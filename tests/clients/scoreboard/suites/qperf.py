"""qperf, whose peers meet over TCP and connect by rdma_cm, or by LIDs alone."""

from functools import partial

from client import debian, tcp

NAME, ORIGIN, IS_SHORT = "qperf", "Debian", True


def prepare(work):
    return debian("qperf")


def cases(device):
    for test in ("rc_lat", "rc_bw", "rc_rdma_write_bw", "rc_rdma_read_lat"):
        client = f"qperf {device.address} -cm 1 -t 1 {test} quit"
        yield f"-cm 1 {test}", partial(device.pair, "qperf", client, tcp(19765))
    infiniband = ["--link-layer", "infiniband"]
    for test in ("rc_lat", "uc_bw", "ud_lat", "rc_rdma_write_bw", "rc_compare_swap_mr"):
        client = f"qperf {device.address} -t 1 {test} quit"
        yield f"{test} by LID", partial(device.pair, "qperf", client, tcp(19765), infiniband)
