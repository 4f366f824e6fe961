"""Reads the files of the devices as programs in Python do, without libibverbs."""

import os
import pathlib
import stat

CLASS = "/sys/class/infiniband"
for name in sorted(os.listdir(CLASS)):
    device = pathlib.Path(CLASS, name)
    assert device.is_symlink() and device.is_dir()
    guid = (device / "node_guid").read_text().strip()
    with open(f"{CLASS}/{name}/ports/1/state") as state:
        assert state.read() == "4: ACTIVE\n"
    # What is real in the words of Python: it follows the links by itself.
    parent = os.path.realpath(f"{CLASS}/{name}/../..")
    with open(os.path.join(parent, "numa_node")) as node:
        assert int(node.read()) >= 0
    assert sorted(entry.name for entry in os.scandir(device / "ports" / "1" / "gids"))[0] == "0"
    print(name, guid)
assert [path.name for path in pathlib.Path(CLASS).glob("*")]
verbs = os.stat("/dev/infiniband/uverbs0")
assert stat.S_ISCHR(verbs.st_mode) and os.access("/dev/infiniband/uverbs0", os.R_OK | os.W_OK)
assert os.path.exists("/dev/infiniband/rdma_cm") and not os.path.exists(f"{CLASS}/none")
