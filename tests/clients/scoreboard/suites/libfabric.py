"""libfabric's pingpong over its provider `verbs`."""

from functools import partial

from client import debian, tcp

NAME, ORIGIN, IS_SHORT = "libfabric-bin", "Debian", True


def prepare(work):
    return debian("libfabric-bin")


def cases(device):
    for endpoint in ("msg", "dgram"):
        program = f"fi_pingpong -p verbs -e {endpoint} -c"
        yield f"-e {endpoint}", partial(device.pair, program, f"{program} {device.address}", tcp(47592))
