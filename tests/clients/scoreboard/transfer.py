#!/usr/bin/env python3
"""Moves memory to another process and back by a transfer engine, and compares each byte.

    verbsim exec -- python tests/clients/scoreboard/transfer.py ENGINE [LAYOUT...]

This process is the initiator. It starts the target, which provides its memory and makes no transfer. The status is 1 if a
byte is wrong, and 3 if the engine reported an error.
"""

import argparse
import asyncio
import contextlib
import ctypes
import multiprocessing
import os
import random
import sys
import threading
import time

SIZE = 4 << 20
BLOCK = 4096


class Reported(Exception):
    """The engine said that it could not move the bytes."""


# ---- What is moved: places in the initiator's memory, in the target's, and lengths
# -----------------


def whole():
    return [(0, 0, SIZE)]


def blocks():
    return [(at, SIZE - BLOCK - at, BLOCK) for at in range(0, SIZE, BLOCK)]


def odd():
    """Odd lengths at odd places, with gaps that have to stay as they are."""
    lengths = [1, 3, 7, 63, 65, 1023, 4095, 4097, 65537, 262143]
    places = [sum(lengths[:i]) + 5 * i + 1 for i in range(len(lengths))]
    return [(at, SIZE // 2 + at + 2, length) for at, length in zip(places, lengths)]


LAYOUTS = {"whole": whole, "blocks": blocks, "odd": odd}


# ---- Engines. Both processes make one on their memory, and meet by the other's card
# ----------------


class Engine:
    """An end of a transfer, with memory of SIZE bytes."""

    def __init__(self, memory, device):
        self.memory, self.address, self.device = memory, ctypes.addressof(memory), device
        self.open()

    def open(self):
        """Registers the memory."""

    def card(self):
        """What the other end has to know of this one. None if only the initiator has to know the target."""
        raise NotImplementedError

    def meet(self, card):
        """Connects to the other end."""
        raise NotImplementedError

    def move(self, verb, pieces):
        """Moves the pieces to the other end ("WRITE") or from there ("READ"). An exception says that it could not."""
        raise NotImplementedError

    def close(self):
        """Ends what does not end by itself."""


class Nixl(Engine):
    def open(self):
        from nixl_cu12._api import nixl_agent, nixl_agent_config

        self.agent = nixl_agent(str(os.getpid()), nixl_agent_config(backends=["UCX"]))
        self.agent.register_memory([(self.address, SIZE, 0, "")], "DRAM")

    def card(self):
        return self.agent.get_agent_metadata(), self.address

    def meet(self, card):
        metadata, self.other = card
        self.peer = self.agent.add_remote_agent(metadata)

    def move(self, verb, pieces):
        here = self.agent.get_xfer_descs([(self.address + here, size, 0) for here, _, size in pieces], "DRAM")
        there = self.agent.get_xfer_descs([(self.other + there, size, 0) for _, there, size in pieces], "DRAM")
        work = self.agent.initialize_xfer(verb, here, there, self.peer)
        state = self.agent.transfer(work)
        while state == "PROC":
            time.sleep(0.001)
            state = self.agent.check_xfer_state(work)
        if state != "DONE":
            raise RuntimeError(state)


class Mooncake(Engine):
    def open(self):
        from mooncake.engine import TransferEngine

        self.engine = TransferEngine()
        if self.engine.initialize("127.0.0.1", "P2PHANDSHAKE", "rdma", self.device):
            raise RuntimeError("initialize")
        if self.engine.register_memory(self.address, SIZE):
            raise RuntimeError("register_memory")

    def card(self):
        return self.engine.get_rpc_port(), self.address

    def meet(self, card):
        self.port, self.other = card

    def move(self, verb, pieces):
        call = {"WRITE": self.engine.batch_transfer_sync_write, "READ": self.engine.batch_transfer_sync_read}[verb]
        here = [self.address + here for here, _, _ in pieces]
        there = [self.other + there for _, there, _ in pieces]
        status = call(f"127.0.0.1:{self.port}", here, there, [size for _, _, size in pieces])
        if status:
            raise RuntimeError(f"status {status}")


class DLSlime(Engine):
    def open(self):
        import dlslime

        self.endpoint = dlslime.RDMAEndpoint(device_name=self.device, link_type="RoCE")
        self.here = self.endpoint.register_memory_region("memory", self.address, 0, SIZE)

    def card(self):
        return self.endpoint.endpoint_info()

    def meet(self, card):
        self.endpoint.connect(card)
        self.there = self.endpoint.register_remote_memory_region("memory", card["mr_info"]["memory"])

    def move(self, verb, pieces):
        call = {"WRITE": self.endpoint.write, "READ": self.endpoint.read}[verb]
        # The place in the target comes first.
        status = call([(self.here, self.there, there, here, size) for here, there, size in pieces]).wait()
        if status:
            raise RuntimeError(f"status {status}")


class InfiniStore(Engine):
    """A server that keeps blocks by keys, in memory of its own: a piece is a block, and its key the place there."""

    PORT = 22345
    connection = None

    def card(self):
        """Starts the server as the program `infinistore.server` does, which also lowers `oom_score_adj`, as root."""
        import infinistore
        import uvloop

        self.loop = uvloop.new_event_loop()
        config = infinistore.ServerConfig(manage_port=1, prealloc_size=1, **self.config())
        infinistore.register_server(self.loop, config)
        self.serving = threading.Thread(target=self.loop.run_forever)
        self.serving.start()

    def meet(self, card):
        import infinistore

        kind = infinistore.TYPE_RDMA
        config = infinistore.ClientConfig(connection_type=kind, host_addr="127.0.0.1", **self.config())
        self.connection = infinistore.InfinityConnection(config)
        self.connection.connect()
        self.connection.register_mr(self.address, SIZE)

    def config(self):
        return {"service_port": self.PORT, "dev_name": self.device, "link_type": "Ethernet", "log_level": "warning"}

    def move(self, verb, pieces):
        connection = self.connection
        call = {"WRITE": connection.rdma_write_cache_async, "READ": connection.rdma_read_cache_async}[verb]

        async def calls():
            for length in {size for _, _, size in pieces}:
                same = [(f"{there} {size}", here) for here, there, size in pieces if size == length]
                await call(same, length, self.address)

        asyncio.run(calls())

    def close(self):
        import infinistore

        if self.connection:
            self.connection.close()
        else:
            self.loop.call_soon_threadsafe(self.loop.stop)
            self.serving.join()
            # If it keeps a block, it crashes when the process ends.
            infinistore.evict_cache(0, 1e-9)


ENGINES = {"nixl": Nixl, "mooncake": Mooncake, "dlslime": DLSlime, "infinistore": InfiniStore}


# ---- The two processes
# -----------------------------------------------------------------------------


def noise(seed):
    return random.Random(seed).randbytes(SIZE)


def target(pipe, options):
    """Provides its memory, and fills or shows it when the initiator asks."""
    memory = ctypes.create_string_buffer(SIZE)
    engine = ENGINES[options.engine](memory, options.device)
    pipe.send(engine.card())
    card = pipe.recv()
    if card is not None:
        engine.meet(card)
    pipe.send("met")
    while (seed := pipe.recv()) is not None:
        if seed == "show":
            pipe.send(memory.raw)
        else:
            memory.raw = noise(seed)
            pipe.send("filled")
    engine.close()


def initiator(pipe, options):
    memory = ctypes.create_string_buffer(SIZE)
    engine = ENGINES[options.engine](memory, options.device)
    card = pipe.recv()
    is_store = card is None
    pipe.send(None if is_store else engine.card())
    pipe.recv()
    engine.meet(card)
    try:
        moved = sum(there_and_back(engine, name, pipe, is_store) for name in options.layouts or LAYOUTS)
    finally:
        engine.close()
    print(f"{options.engine}: moved {moved} bytes, and every byte is right")


def there_and_back(engine, name, pipe, is_store):
    """Writes a layout, and reads it back into other bytes. How much was moved."""
    memory, pieces = engine.memory, LAYOUTS[name]()
    memory.raw = sent = noise(f"{name}, sent")
    pipe.send(f"{name}, before")
    pipe.recv()
    move(engine, "WRITE", pieces)
    there = image(noise(f"{name}, before"), [(there, here, size) for here, there, size in pieces], sent)
    if not is_store:
        pipe.send("show")
        compare(f"{name}, WRITE", pipe.recv(), there)
    memory.raw = before = noise(f"{name}, back")
    move(engine, "READ", pieces)
    compare(f"{name}, READ", memory.raw, image(before, pieces, there))
    return 2 * sum(size for _, _, size in pieces)


def move(engine, verb, pieces):
    try:
        engine.move(verb, pieces)
    except Exception as error:
        raise Reported(f"{verb}: {type(error).__name__}: {error}") from error


def image(before, pieces, source):
    """These bytes, once the pieces have been copied to them."""
    after = bytearray(before)
    for to, at, size in pieces:
        after[to : to + size] = source[at : at + size]
    return bytes(after)


def compare(what, found, expected):
    wrong = [at for at in range(SIZE) if found[at] != expected[at]] if found != expected else []
    if wrong:
        sys.exit(f"{what}: {len(wrong)} bytes are wrong, the first at {wrong[0]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine", choices=ENGINES, metavar="ENGINE", help=", ".join(ENGINES))
    parser.add_argument("layouts", nargs="*", metavar="LAYOUT", help=f"{', '.join(LAYOUTS)} [default: all]")
    parser.add_argument("--device", default="sim0", help="[default: sim0]")
    options = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    pipe, other = context.Pipe()
    child = context.Process(target=target, args=(other, options))
    child.start()
    other.close()
    try:
        initiator(pipe, options)
    except Reported as reported:
        print(f"{options.engine} reported: {reported}", file=sys.stderr)
        return 3
    finally:
        with contextlib.suppress(OSError):
            pipe.send(None)
        child.join(30)
        child.kill()
    return child.exitcode


if __name__ == "__main__":
    sys.exit(main())
