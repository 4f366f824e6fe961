"""UCX by its transports `rc_v` and `ud_v`: `ucx_perftest`, and a program of ours that meets by rdma_cm
and compares each byte."""

from functools import partial

from client import cm, compiled, debian, tcp

NAME, ORIGIN, IS_SHORT = "ucx-utils", "Debian", True
# UCX gives its peers up where all is as slow as in the virtual machine.
KERNELS = ()
PORT = 18516
TESTS = "tag_lat tag_bw tag_sync_lat ucp_put_lat ucp_put_bw ucp_get ucp_am_lat stream_lat".split()
LOSS = '[[rule]]\nkind = "packet"\neffect = "drop"\nper_million = 10000\n'


def prepare(work):
    version = debian("ucx-utils", "libucx-dev")
    compiled(work, "meet.c", "-lucp", "-lucs")
    return version


def cases(device):
    faults = device.work / "loss.toml"
    faults.write_text(LOSS)
    for transport in ("rc_v", "ud_v"):
        run = partial(partial, perftest, device, transport)
        for test in TESTS:
            yield f"{test}, {transport}", run(f"{test} -n 300 -s 1000")
        yield f"ucp_fadd, {transport}", run("ucp_fadd -n 300 -s 8")
        yield f"tag_bw of 1 MiB, {transport}", run("tag_bw -n 50 -s 1048576")
        yield f"tag_lat with 1 % loss, {transport}", run("tag_lat -n 300 -s 1000", options=["--faults", faults])
        yield f"ucp_listener, {transport}", partial(meet, device, transport)


def env(device, transport):
    return {"UCX_TLS": transport, "UCX_NET_DEVICES": f"{device.name}:1", "UCX_SOCKADDR_TLS_PRIORITY": "rdmacm"}


def perftest(device, transport, test, options=()):
    program = f"ucx_perftest -p {PORT}"
    client = f"{program} 127.0.0.1 -t {test}"
    device.pair(f"{program} -t {test}", client, tcp(PORT), options, env=env(device, transport), seconds=60)


def meet(device, transport):
    program = [device.work / "meet", "13337"]
    device.pair(program, [*program, device.address], cm(13337), env=env(device, transport))
