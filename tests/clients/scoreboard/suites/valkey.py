"""Valkey's server with its RDMA module, which is built here: its own test of the module, its command line
and its benchmark."""

from functools import partial
from pathlib import Path

from client import cm, quietly, unpacked

NAME, ORIGIN, IS_SHORT = "valkey", "Debian sid", False
VERSION = "9.1.2"
POOL = f"v/valkey/valkey_{VERSION}.orig.tar.gz"
DIGEST = "8e8557da7426a51b4e0fb514a65ef6241dc7c85cb408243af389070abf379cec"
PORT = 6379


def prepare(work):
    folder = unpacked(work, POOL, DIGEST)
    if not (folder / "tests/rdma/rdma-test").exists():
        quietly("make", "--jobs=2", "BUILD_RDMA=module", "MALLOC=libc", cwd=folder)
        quietly("make", "-C", "tests/rdma", cwd=folder)
    return VERSION


def cases(device):
    folder = unpacked(device.work, POOL, DIGEST)
    for threads in (1, 4):
        test = f"{folder}/tests/rdma/rdma-test --thread {threads} --maxkeys 200 -h {device.address} -p {PORT}"
        yield f"rdma-test --thread {threads}", partial(ask, device, folder, test)
    cli = f"{folder}/src/valkey-cli --rdma -h {device.address} -p {PORT}"
    yield "valkey-cli", partial(ask, device, folder, f"{cli} echo over-rdma", "over-rdma")
    benchmark = f"{folder}/src/valkey-benchmark --rdma -h {device.address} -p {PORT} -q -n 1000 -c 4 -d 4096 -t set,get"
    yield "valkey-benchmark", partial(ask, device, folder, benchmark, "requests per second")


def ask(device, folder, client, wanted=""):
    # The test saves, and a server would first load that.
    Path("dump.rdb").unlink(missing_ok=True)
    options = "--port 0 --save '' --protected-mode no"
    module = f"--loadmodule {folder}/src/valkey-rdma.so --rdma-bind {device.address} --rdma-port {PORT}"
    server = f"{folder}/src/valkey-server {options} {module}"
    text = device.pair(server, client, cm(PORT), stays=True)
    assert wanted in text, text
