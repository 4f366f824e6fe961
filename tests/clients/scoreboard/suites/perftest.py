"""Latency and bandwidth of each operation. Peers meet over TCP, or by rdma_cm (`-R`). There the client connects a second
time, maybe before its server listens again; a pair that is refused for that is started again."""

from functools import partial

from client import Failed, cm, debian, tcp

NAME, ORIGIN, IS_SHORT = "perftest", "Debian", True
PORT = 18515
STARTS = 5

ALL = [f"ib_{verb}_{what}" for verb in ("send", "write", "read", "atomic") for what in ("lat", "bw")]
OTHERS = [
    # Without acknowledgements nothing holds a sender back: all that it sends needs room in the
    # receiver's socket.
    *(f"ib_{test} -c UC" for test in ("send_lat", "write_lat", "write_bw", "send_bw -s 1024")),
    *("ib_send_lat -c UD", "ib_send_bw -c UD -s 1024", "ib_send_lat -g -c UD"),
    *(f"ib_{test} -c XRC" for test in ("send_lat", "send_bw", "write_lat", "write_bw", "read_lat", "read_bw")),
    *("ib_read_lat -e", "ib_send_bw -e", "ib_send_bw -b", "ib_write_bw -q 8", "ib_read_bw -s 8388608 -n 5"),
]
ON_ONE_ADDRESS = ["ib_send_lat", "ib_write_bw -q 8", "ib_read_bw", "ib_send_lat -c UD", "ib_send_lat -g -c UD"]
BY_RDMA_CM = [*(f"{test} -R" for test in ALL), "ib_send_lat -R -c UD", "ib_write_bw -R -q 8"]


def prepare(work):
    return debian("perftest")


def cases(device):
    for test in [*ALL, *OTHERS]:
        yield test, partial(pair, device, test, tcp(PORT))
    shared = ["--fabric", "127.77.77.1"]
    for test in ON_ONE_ADDRESS:
        yield f"{test} on one address", partial(pair, device, test, tcp(PORT), shared)
    for test in BY_RDMA_CM:
        yield test, partial(pair, device, test, cm(PORT))


def pair(device, test, meet, options=()):
    if " -R" not in test:
        device.skip_iwarp()
    few = "" if " -n " in test else " -n 500"
    gid = "" if " -R" in test else f" -x {device.gid_index}"
    program = f"{test} -d {device.name} -F{gid}{few}"
    address = device.address if " -R" in test else "127.0.0.1"
    for start in range(1, STARTS + 1):
        try:
            return device.pair(program, f"{program} {address}", meet, options)
        except Failed as failed:
            was_early = " -R" in test and "Failed to create RDMA CM connection" in str(failed)
            if not was_early or start == STARTS:
                raise
