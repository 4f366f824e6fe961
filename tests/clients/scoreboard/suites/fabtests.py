"""libfabric's own tests, of the provider `verbs` and of `ofi_rxm` over it. Both are built here."""

import re

from client import came_out, quietly, unpacked

NAME, ORIGIN, IS_SHORT = "fabtests", "Debian trixie", False
VERSION = "2.1.0"
POOL = f"libf/libfabric/libfabric_{VERSION}.orig.tar.xz"
DIGEST = "1a66369772d5bb151737214af1c478993e969cf298e8f9ed369e7a2ab8d8c6df"
OTHERS = "rxd mrail shm sm2 lpp efa opx psm3 usnic ucx sockets udp tcp"
KINDS = {"Pass": "passed", "Fail": "failed", "Notrun": "skipped", "Excluded": "skipped"}


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
    for provider in ("verbs", "verbs;ofi_rxm"):
        script = f"runfabtests.sh -t quick -s {device.address} -c {device.address} '{provider}'"
        text = device.alone(script, seconds=1800, env=env, statuses=range(256))
        for test, verdict in re.findall(r"^(fi_.*?):\s+(Pass|Fail|Notrun|Excluded)\b", text, re.MULTILINE):
            why = "not run by the suite itself" if KINDS[verdict] == "skipped" else verdict
            yield f"{provider}: {test}", came_out(KINDS[verdict], why)
