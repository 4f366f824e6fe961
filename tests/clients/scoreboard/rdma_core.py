"""rdma-core's own tests in Python, for the suites of pyverbs."""

import json

from client import HERE, Failed, came_out

ADDRESSES = "127.7.7.1", "127.7.7.2"


def tests(device, pyverbs, sources, python="/usr/bin/python3", mistakes=None):
    """The cases of these tests, with the pyverbs in a folder. `mistakes` has the tests that do something
    wrong, and what."""
    # Where the rules leave a choice, the tests want what mlx5 does, which has no flushes and atomic
    # writes. The tests of rdma_cm are of two processes each, which share the addresses of the
    # devices. Another test looks for an empty entry in a table of GIDs, and without `--gids` there
    # is none.
    mlx5 = ["--profile", "mlx5"]
    options = {
        "rdmacm": [*mlx5, "--fabric", ",".join(ADDRESSES)],
        "placement": ["--profile", "spec"],
        "other": [*mlx5, "--gids", "sim0/1/3=::"],
    }
    for which, own in options.items():
        address = [] if device.kernel else [ADDRESSES[0]]
        program = [python, HERE / "rdma_core_tests.py", pyverbs, sources, which, device.name, *address]
        text = device.alone(program, [] if device.kernel else own, seconds=300)
        verdicts = [json.loads(line) for line in text.splitlines() if line.startswith("[")]
        if not verdicts:
            raise Failed(f"no test ran: {text[-400:]}")
        for test, kind, why in verdicts:
            mistake = (mistakes or {}).get(test)
            yield test, came_out("skipped", mistake) if mistake else came_out(kind, why)
