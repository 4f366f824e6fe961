"""libfabric's own tests, of the provider `verbs` and of `ofi_rxm` over it. Both are built here."""

import re

from client import OWN_ADDRESSES, came_out, quietly, unpacked

NAME, ORIGIN, IS_SHORT = "fabtests", "Debian trixie", False
# They take too long where all is as slow as in the virtual machine.
KERNELS = ()
VERSION = "2.1.0"
POOL = f"libf/libfabric/libfabric_{VERSION}.orig.tar.xz"
DIGEST = "1a66369772d5bb151737214af1c478993e969cf298e8f9ed369e7a2ab8d8c6df"
MISTAKES = {"fi_msg_sockets": "libfabric resolves an address again that is resolved: EINVAL, as on Linux"}
OTHERS = "rxd mrail shm sm2 lpp efa opx psm3 usnic ucx sockets udp tcp"
KINDS = {"Pass": "passed", "Fail": "failed", "Notrun": "skipped"}


def prepare(work):
    sources, built = unpacked(work, POOL, DIGEST), work / "built"
    if not built.exists():
        options = ["--enable-verbs=yes", *(f"--disable-{other}" for other in OTHERS.split())]
        for folder, own in ((sources, options), (sources / "fabtests", [f"--with-libfabric={work}"])):
            quietly("./autogen.sh", cwd=folder)
            quietly("./configure", f"--prefix={work}", *own, cwd=folder)
            quietly("make", "--silent", "--jobs=2", "install", cwd=folder)
        built.touch()
    return VERSION


def cases(device):
    env = {"PATH": f"{device.work / 'bin'}:/usr/bin:/bin", "LD_LIBRARY_PATH": f"{device.work / 'lib'}"}
    # Linux gives no device to an id that is bound to a loopback address, and libfabric then takes
    # another.
    address = device.address if device.kernel else OWN_ADDRESSES[0]
    for provider in ("verbs", "verbs;ofi_rxm"):
        name = provider.split(";")[-1]
        excluded = device.work / f"share/fabtests/test_configs/{name}/{name}.exclude"
        script = f"runfabtests.sh -t quick -f {excluded} -s {address} -c {address} '{provider}'"
        text = device.alone(script, seconds=1800, env=env, statuses=range(256))
        for test, verdict in re.findall(r"^(fi_.*?):\s+(Pass|Fail|Notrun)\b", text, re.MULTILINE):
            why = MISTAKES.get(test.split(" ")[0], "not run by the suite itself")
            kind = "skipped" if test.split(" ")[0] in MISTAKES else KINDS[verdict]
            yield f"{provider}: {test}", came_out(kind, why if kind == "skipped" else verdict)
