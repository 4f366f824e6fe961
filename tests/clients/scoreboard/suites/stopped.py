"""Pairs one side of which stops for five seconds, as in a debugger, or is killed: `ib_write_bw` of perftest, and `ucmatose`
of the examples of librdmacm."""

import os
import signal
import subprocess
import time
from functools import partial

from client import Failed, cm, debian, says, tcp

NAME, ORIGIN, IS_SHORT = "stopped peers", "Debian", True
PORT = 18515
PAUSE = 5
# What a client has written when both sides are at work. The head of the table of results follows
# the last exchange by TCP.
AT_WORK = {"ib_write_bw": "#bytes", "ucmatose": "connecting"}


def prepare(work):
    return debian("perftest", "rdmacm-utils")


def cases(device):
    # Longer than the pause, and without a warm-up.
    write = f"ib_write_bw -d {device.name} -x {device.gid_index} -F -D {PAUSE + 2}", "127.0.0.1", tcp(PORT)
    connect = "ucmatose", f"-s {device.address}", cm(7471)
    for program, address, meet in write, connect:
        name = program.split(" ")[0]
        server, client = f"stdbuf -oL {program}", f"stdbuf -oL {program} {address}"
        for stopped in "server", "client":
            yield f"{name}, the {stopped} stopped", partial(stop, device, server, client, meet, AT_WORK[name], stopped)
    yield "ucmatose, the server stopped before a client comes", partial(come_late, device, *connect)
    yield "ib_write_bw, the server killed", partial(kill, device, *write)


def stop(device, server, client, meet, text, stopped):
    """Stops one side while both are at work. Both must end with 0."""
    skip_iwarp(device, server)
    with device.start(server, name="server") as serving:
        device.await_meeting(serving, meet)
        with device.start(client, name="client") as asking:
            device.await_meeting(asking, says(text))
            pause(serving if stopped == "server" else asking)
            both_end(serving, asking)


def come_late(device, program, address, meet):
    """The client meets a server that is stopped. Both must end with 0."""
    with device.start(program, name="server") as serving:
        device.await_meeting(serving, meet)
        os.killpg(serving.pid, signal.SIGSTOP)
        with device.start(f"stdbuf -oL {program} {address}", name="client") as asking:
            device.await_meeting(asking, says("starting client"))
            pause(serving)
            both_end(serving, asking)


def kill(device, program, address, meet):
    """The client must fail within a time that its own timeout and retries explain: 0.6 seconds."""
    skip_iwarp(device, program)
    with device.start(f"stdbuf -oL {program}", name="server") as serving:
        device.await_meeting(serving, meet)
        with device.start(f"stdbuf -oL {program} {address}", name="client") as asking:
            device.await_meeting(asking, says(AT_WORK["ib_write_bw"]))
            os.killpg(serving.pid, signal.SIGKILL)
            try:
                asking.wait(10)
            except subprocess.TimeoutExpired as late:
                raise Failed(f"the client goes on: {asking.tail()}") from late
            if "status 12" not in asking.text():
                raise Failed(f"not a retry counter that is exceeded: {asking.tail()}")


def skip_iwarp(device, program):
    if "ib_" in program:
        device.skip_iwarp()


def pause(process):
    os.killpg(process.pid, signal.SIGSTOP)
    time.sleep(PAUSE)
    os.killpg(process.pid, signal.SIGCONT)


def both_end(serving, asking):
    for process in asking, serving:
        if process.wait(60):
            raise Failed(f"the client: {asking.tail()}; the server: {serving.tail()}")
