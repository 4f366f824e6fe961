"""What the files of `suites` are written with: how programs get here, and how they run on a device."""

import contextlib
import functools
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Addresses of the machine that are not loopback, where the clients have a network of their own.
OWN_ADDRESSES = "192.0.2.1", "2001:db8::1"


class Skipped(Exception):
    """A case, or a client as a whole, cannot run. The text says why."""


class Failed(Exception):
    """A case went wrong. The text says how."""


class TimedOut(Failed):
    """A program did not end in time."""


class Device:
    """Where programs run: on simulated devices, or on one of a kernel."""

    def __init__(self, verbsim, work, kernel=None):
        self.verbsim, self.work, self.kernel = verbsim, work, kernel
        self.name = f"{kernel}0" if kernel else "sim0"
        # Where servers listen.
        self.address = {None: "127.0.0.1", "rxe": "192.168.71.1", "siw": "192.168.72.1"}[kernel]
        self.gid_index = 1 if kernel == "rxe" else 0
        # What all programs find in their environment.
        self.env = {}

    def skip_iwarp(self):
        """Called by cases whose programs connect queue pairs themselves."""
        if self.kernel == "siw":
            raise Skipped("iWARP has no connections without rdma_cm")

    def command(self, program, options=()):
        """The words that run a program, which may be given in one string."""
        words = shlex.split(program) if isinstance(program, str) else [str(word) for word in program]
        if self.kernel:
            if options:
                raise Skipped("options of the simulator")
            return words
        return [self.verbsim, "exec", *options, "--", *words]

    def alone(self, program, options=(), seconds=60, env=None, folder=None, statuses=(0,)):
        """Runs a program, which has to end with one of these statuses. What it wrote."""
        with self.start(program, options, env, "alone", folder) as process:
            self._await(process, seconds, statuses=statuses)
            return process.text()

    def pair(self, server, client, meet, options=(), seconds=40, env=None, stays=False):
        """Runs a server, and a client once the server can be met. Both must end with 0, except for a server
        that stays until it is ended."""
        with self.start(server, options, env, "server") as serving:
            self.await_meeting(serving, meet, seconds)
            with self.start(client, options, env, "client") as asking:
                self._await(asking, seconds, serving)
                if stays:
                    serving.end()
                else:
                    self._await(serving, seconds)
                return asking.text()

    def start(self, program, options=(), env=None, name="alone", folder=None):
        """A program that runs, for a `with` block. It writes to the file with that name."""
        env = {**os.environ, **self.env, **(env or {})}
        return Process(self.command(program, options), env, self.work / name, folder)

    def await_meeting(self, server, meet, seconds=40):
        """Waits until a server can be met."""
        end = time.monotonic() + seconds
        while not meet(self, server):
            if server.poll() is not None or time.monotonic() > end:
                raise Failed(f"the server cannot be met: {server.tail()}")
            time.sleep(0.01)

    @staticmethod
    def _await(process, seconds, other=None, statuses=(0,)):
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            status = None
        if status not in statuses:
            said = process.tail() + (f"; the server: {other.tail()}" if other else "")
            if status is None:
                raise TimedOut(f"no status after {seconds} s: {said}")
            raise Failed(f"status {status}: {said}")


class Process(subprocess.Popen):
    """A program that writes into a file. It is ended, with all that it has started, when its block is left."""

    def __init__(self, command, env, output, folder):
        self.output = output
        with open(output, "wb") as file:
            super().__init__(
                command,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                env=env,
                cwd=folder,
                start_new_session=True,
            )

    def text(self):
        return self.output.read_text(errors="replace")

    def tail(self):
        return " / ".join(self.text().split("\n")[-6:])

    def end(self):
        for which in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, which)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.wait(5)
                return

    def __exit__(self, *what):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        super().__exit__(*what)


# ---- When a client can meet a server -----------------------------------------------------------


def tcp(port):
    """It listens at a port of TCP."""
    show = ["ss", "--listening", "--tcp", "--numeric", "--no-header", f"sport = :{port}"]
    return lambda device, server: subprocess.check_output(show) != b""


def cm(port):
    """It listens at a port of rdma_cm."""

    def meet(device, server):
        if device.kernel:
            ids = subprocess.check_output(["rdma", "resource", "show", "cm_id"], text=True)
            return any("LISTEN" in line and f":{port} " in line for line in ids.split("\n"))
        names = re.findall(rf"@(verbsim .* {port})$", Path("/proc/net/unix").read_text(), re.MULTILINE)
        return any(answer_of(name) for name in names)

    return meet


def answer_of(name):
    """What a process with this name of an abstract socket writes to those who connect: nothing before it
    listens."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as asking:
        asking.connect(f"\0{name}")
        return asking.recv(256)
    return b""


def says(text):
    """It has written this text."""
    return lambda device, server: text in server.text()


# ---- Clients with a suite of their own ---------------------------------------------------------


def came_out(kind, why=""):
    """The case of a test that another program has run: "passed", "failed" or "skipped"."""

    def case():
        if kind == "skipped":
            raise Skipped(why)
        if kind == "failed":
            raise Failed(why)

    return case


def libtest(device, programs, arguments=(), seconds=300, folder=None):
    """The cases of test programs of Rust, which run here."""
    kinds = {"ok": "passed", "ignored": "skipped", "FAILED": "failed"}
    for program in programs:
        command = [program, "--test-threads=1", *arguments]
        quiet = {"RUST_BACKTRACE": "0"}
        text = device.alone(command, seconds=seconds, env=quiet, folder=folder, statuses=(0, 101))
        tests = re.compile(r"^test (\S+)(?: - should panic)? \.\.\. (\w+)(?:, (.*))?$", re.MULTILINE)
        for test, verdict, why in tests.findall(text):
            panic = re.search(rf"^---- {re.escape(test)} stdout ----\n(.*?)\n\n", text, re.MULTILINE | re.DOTALL)
            name = f"{Path(program).name.rsplit('-', 1)[0]}: {test}"
            yield name, came_out(kinds[verdict], panic[1] if panic else why or "ignored by the suite itself")


# ---- How clients get here ----------------------------------------------------------------------


def quietly(*command, **options):
    """Runs a command of the host, and shows what it wrote only if it fails."""
    done = subprocess.run(
        [str(word) for word in command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
        **options,
    )
    if done.returncode:
        raise Failed(f"{shlex.join(map(str, command))}: {' / '.join(done.stdout.split(chr(10))[-8:])}")
    return done.stdout


def debian(*packages):
    """Packages of the host, which is a Debian system. The version of the first."""
    show = ["dpkg-query", "--show", "--showformat", "${db:Status-Status} ${Version}\n"]
    done = subprocess.run([*show, *packages], capture_output=True, text=True, check=False)
    states = [line.split(" ") for line in done.stdout.splitlines()]
    if done.returncode or any(state[0] != "installed" for state in states):
        raise Skipped(f"not installed: {', '.join(packages)}")
    return states[0][1]


def foreign(work, suite, *packages):
    """Packages of another suite of Debian in a folder of their own: that folder, and the version of the
    first."""
    folder = work / suite
    try:
        version = quietly(HERE.parent / "debian", "packages", suite, folder, *packages).split("\n")[-2]
    except Failed as failed:
        raise Skipped(f"Debian's mirror does not have the packages of {suite}") from failed
    return folder, version


def unpacked(work, pool, digest):
    """The folder with a source archive of Debian's mirror, which is named like
    `r/rdma-core/rdma-core_65.0.orig.tar.gz` and has this SHA-256."""
    folder = work / Path(pool).name.split(".orig.")[0]
    if not folder.exists():
        try:
            quietly(HERE.parent / "debian", "unpack", pool, digest, folder)
        except Failed as failed:
            raise Skipped(f"Debian's mirror does not have {Path(pool).name}") from failed
    return folder


def wheels(work, *requirements, python="/usr/bin/python3"):
    """An environment of Python with packages of PyPI. Its interpreter."""
    environment = work / "environment"
    wanted = "\n".join(requirements)
    stamp = environment / "requirements"
    if not stamp.exists() or stamp.read_text() != wanted:
        quietly(python, "-m", "venv", "--clear", environment)
        try:
            quietly(environment / "bin/pip", "install", "--quiet", "--disable-pip-version-check", *requirements)
        except Failed as failed:
            raise Skipped(f"PyPI has no {' '.join(requirements)} for this machine: {failed}") from failed
        stamp.write_text(wanted)
    return environment / "bin/python"


@functools.cache
def crate(work, name, version, *features):
    """The sources of a crate of crates.io, with its tests compiled: its folder, and the test programs."""
    folder = work / f"{name}-{version}"
    if not folder.exists():
        user = work / "user"
        (user / "src").mkdir(parents=True, exist_ok=True)
        (user / "src/lib.rs").write_text("")
        package = '[package]\nname = "user"\nversion = "0.1.0"\nedition = "2021"\n[workspace]\n'
        (user / "Cargo.toml").write_text(f'{package}[dependencies]\n{name} = "={version}"\n')
        try:
            found = quietly("cargo", "metadata", "--quiet", "--format-version", "1", cwd=user)
        except Failed as failed:
            raise Skipped(f"crates.io has no {name} {version}: {failed}") from failed
        packages = json.loads(found)["packages"]
        manifest = next(package["manifest_path"] for package in packages if package["name"] == name)
        shutil.copytree(Path(manifest).parent, folder)
        with open(folder / "Cargo.toml", "a", encoding="utf-8") as file:
            file.write("\n[workspace]\n")
    build = ["cargo", "test", "--quiet", "--no-run", "--message-format=json", *features]
    env = {**os.environ, "CARGO_TARGET_DIR": str(work / "target")}
    done = subprocess.run(build, cwd=folder, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failed(f"{name} {version} does not compile: {done.stderr[-600:]}")
    messages = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    tests = [message for message in messages if message.get("executable") and message["profile"]["test"]]
    return folder, sorted(message["executable"] for message in tests)


def compiled(work, source, *libraries, compiler="cc"):
    """A program of this folder in C."""
    program = work / Path(source).stem
    quietly(compiler, "-O1", "-Wall", "-Wextra", "-Werror", HERE / source, "-o", program, *libraries)
    return program


def ucx(device, transport):
    """The environment in which the UCX of an MPI uses a device.

    At its end, UCX unmaps memory into which datagrams may still arrive, and with its cache of registrations the region
    is deregistered later. A real device has pinned the pages; the drop-in gets a SIGSEGV. Without the cache the region
    goes first.
    """
    return {"UCX_TLS": transport, "UCX_NET_DEVICES": f"{device.name}:1", "UCX_IB_REG_METHODS": "direct"}
