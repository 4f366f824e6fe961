"""A live migration over RDMA: a guest of 64 MiB moves to another process, and runs there."""

import json
import socket
import time
from functools import partial

from client import Failed, cm, debian

NAME, ORIGIN, IS_SHORT = "qemu-system-x86", "Debian", True
# A virtual machine in a virtual machine takes too long.
KERNELS = ()
PORT = 4444
GUEST = "qemu-system-x86_64 -nodefaults -no-user-config -display none -machine pc -accel tcg -m 64"


def prepare(work):
    return debian("qemu-system-x86")


def cases(device):
    for pins in (False, True):
        yield "rdma-pin-all" if pins else "migrate", partial(migrate, device, pins)


def migrate(device, pins):
    place = f"rdma:{device.address}:{PORT}"
    with device.start(monitored(device, "server", "-incoming defer"), name="server") as serving:
        target = Monitor(device, "server")
        target.say("migrate-set-capabilities", capabilities=[{"capability": "rdma-pin-all", "state": pins}])
        target.say("migrate-incoming", uri=place)
        device.await_meeting(serving, cm(PORT))
        with device.start(monitored(device, "client"), name="client"):
            source = Monitor(device, "client")
            source.say("migrate-set-capabilities", capabilities=[{"capability": "rdma-pin-all", "state": pins}])
            source.say("migrate", uri=place)
            source.wait_for("query-migrate", "completed")
            target.wait_for("query-status", "running")
            target.say("quit")
            source.say("quit")


def monitored(device, name, options=""):
    return f"{GUEST} -qmp unix:{device.work / name}.qmp,server=on,wait=off {options}"


class Monitor:
    """The protocol that controls a guest."""

    def __init__(self, device, name):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(30)
        self.connect(f"{device.work / name}.qmp")
        self.file = self.socket.makefile()
        self.file.readline()
        self.say("qmp_capabilities")

    def connect(self, path):
        for _ in range(1000):
            try:
                return self.socket.connect(path)
            except OSError:
                time.sleep(0.02)
        raise Failed("the guest does not start")

    def say(self, command, **arguments):
        self.socket.sendall(json.dumps({"execute": command, "arguments": arguments}).encode())
        while True:
            answer = json.loads(self.file.readline())
            if "error" in answer:
                raise Failed(f"{command}: {answer['error']['desc']}")
            if "return" in answer:
                return answer["return"]

    def wait_for(self, command, wanted):
        for _ in range(1500):
            status = self.say(command).get("status")
            if status == wanted:
                return
            if status == "failed":
                break
            time.sleep(0.02)
        raise Failed(f"{command} says {status}, not {wanted}")
