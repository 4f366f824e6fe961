"""The cases of transfer engines: what `transfer.py` moves, without faults and with them."""

from functools import partial
from pathlib import Path

from client import HERE, Failed

LAYOUTS = {"4 MiB": "whole", "1,024 blocks of 4 KiB": "blocks", "odd lengths at odd places": "odd"}
FAULTS = {"1 % loss": "loss", "duplicates": "duplicates", "delays and other orders": "delays"}
RIGHT, REPORTED = 0, 3


def cases(device, engine, python, profile="spec", profiles=("mlx5",), is_silence_reported=True):
    run = partial(partial, move, device, [python, HERE / "transfer.py", "--device", device.name, engine])
    for name, layout in LAYOUTS.items():
        yield name, run(profile, [layout])
    for other in profiles:
        yield f"all, profile {other}", run(other)
    for name, plan in FAULTS.items():
        yield f"all with {name}", run(profile, plan=plan)
    if is_silence_reported:
        yield "an error if writes do not arrive", run(profile, plan="silence", status=REPORTED)


def move(device, program, profile, layouts=(), plan=None, status=RIGHT):
    packets = Path("packets.pcap")
    packets.unlink(missing_ok=True)
    options = ["--profile", profile, "--pcap", packets, "--diagnose=diagnosis"]
    if plan:
        options += ["--faults", HERE / f"faults/{plan}.toml"]
    said = device.alone([*program, *layouts], [] if device.kernel else options, seconds=120, statuses=(status,))
    if status == RIGHT and not device.kernel:
        moved = int(said.split("moved ")[1].split(" bytes")[0])
        if packets.stat().st_size < moved:
            raise Failed(f"of {moved} bytes, RDMA moved at most {packets.stat().st_size}")
