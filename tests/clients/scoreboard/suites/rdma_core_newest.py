"""Programs and vendors' libraries of the newest rdma-core, with the C library that they need. The vendors'
libraries have to find all names that they import."""

from functools import partial

from client import TimedOut, foreign
from suites import pingpong, rdmacm_utils

NAME, ORIGIN, IS_SHORT = "rdma-core programs", "Debian sid", True
# Its drivers of those devices are not installed.
KERNELS = ()
PACKAGES = "libibverbs1 ibverbs-providers ibverbs-utils librdmacm1t64 rdmacm-utils libc6 libnl-3-200 libnl-route-3-200"
VENDORS = "efa hns ionic mana mlx4 mlx5".split()


def prepare(work):
    root, version = foreign(work, "sid", *PACKAGES.split())
    libraries = next(root.glob("usr/lib/*/libibverbs.so.1")).parent
    loader = next(root.glob("usr/lib/**/ld-linux-*.so.*"))
    # Each program is found by its name, and runs with its own C library. What `verbsim exec` puts
    # first stays first.
    programs = work / "programs"
    programs.mkdir(exist_ok=True)
    for program in root.glob("usr/bin/*"):
        script = programs / program.name
        path = f'--library-path "$LD_LIBRARY_PATH:{libraries}"'
        vendor = f'${{VENDOR:+--preload "{libraries}/lib$VENDOR.so.1"}}'
        script.write_text(f'#!/bin/sh\nexec "{loader}" {path} {vendor} "{program}" "$@"\n')
        script.chmod(0o755)
    return version


def cases(device):
    device.env["PATH"] = f"{device.work / 'programs'}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
    yield "ibv_devinfo -v", partial(devices, device, "ibv_devinfo -v", "GID[ ")
    if not device.kernel:
        for vendor in VENDORS:
            env = {"VENDOR": vendor, "LD_BIND_NOW": "1"}
            yield f"ibv_devices with lib{vendor}.so.1", partial(devices, device, "ibv_devices", device.name, env)
    yield from pingpong.cases(device)
    for name, case in rdmacm_utils.examples(device):
        yield name, partial(once_more, case) if name.startswith("rping") else case


def once_more(case):
    """Runs a case of rping, which can hang on any device. Its thread for events polls the channel and
    then calls rdma_get_cm_event. If rdma_destroy_id in the main thread removes the DISCONNECTED event
    between the two, the call never returns."""
    try:
        return case()
    except TimedOut:
        return case()


def devices(device, program, wanted, env=None):
    text = device.alone(program, env=env)
    assert wanted in text, text
