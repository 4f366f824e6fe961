"""fio's engine `rdma`: 8 MiB in blocks of 64 KiB. `verb=send` is left out: it may send before its
server has posted a receive, and then waits forever."""

from functools import partial

from client import cm, debian

NAME, ORIGIN, IS_SHORT = "fio", "Debian", True


def prepare(work):
    return debian("fio")


def cases(device):
    for verb in ("write", "read"):
        yield f"verb={verb}", partial(apart, device, verb)
    for verb in ("write", "read"):
        yield f"verb={verb}, thread", partial(together, device, verb)


def apart(device, verb):
    server = job(device, "fio-server", "[server]", "rw=read")
    device.pair(server, job(device, "fio-client", *client(device, verb)), cm(7176))


def together(device, verb):
    device.alone(job(device, "fio-both", "thread=1", "[server]", "rw=read", *client(device, verb), "startdelay=1"))


def client(device, verb):
    return ["[client]", "rw=write", "iodepth_batch_complete=1", f"hostname={device.address}", f"verb={verb}"]


def job(device, name, *lines):
    file = device.work / name
    both = ["[global]", "ioengine=rdma", "port=7176", "bs=64k", "size=8m", "iodepth=16"]
    file.write_text("\n".join([*both, *lines, ""]))
    return ["fio", file]
