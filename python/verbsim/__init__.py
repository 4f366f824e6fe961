"""Faults on purpose, findings, and marks, for tests of Python programs that use libibverbs.

A test that runs under ``verbsim exec`` can lose packets, let calls and completions fail, take a port down, and ask
what the program did wrong so far. On other devices `is_simulated` is false: `findings` is empty, `mark` does nothing,
and whatever puts a fault in force raises `OSError` with ``ENOTSUP``.

A device is its name, such as ``"sim0"``, or a pyverbs ``Context``. A queue pair is its number, or a
pyverbs ``QP``. ``None`` stands for all of them. An argument of a wrong type raises `TypeError`, and a
wrong value `OSError`. Any thread may call any function at any time.

Faults and findings are those of the calling process. A child after ``fork`` has devices of its own,
without its parent's faults. Devices of other processes cannot be reached.
"""

import ctypes
import errno
import json
import os
from dataclasses import dataclass
from typing import Any, List, Optional, Type, Union

__all__ = [
    "Device",
    "Fault",
    "Finding",
    "QueuePair",
    "delay_packets",
    "drop_packets",
    "fail_calls",
    "fail_completions",
    "findings",
    "inject",
    "is_simulated",
    "kill_device",
    "mark",
    "port_down",
]

#: The longest delay, in seconds.
_LONGEST = 1e9

#: The name of a device, or an object with an attribute ``name``, such as a pyverbs ``Context``.
Device = Union[str, Any]

#: The number of a queue pair, or an object with an attribute ``qp_num``, such as a pyverbs ``QP``.
QueuePair = Union[int, Any]


def is_simulated() -> bool:
    """Whether the devices of this process are simulated."""
    return _function("verbsim_inject") is not None


@dataclass(frozen=True)
class Finding:
    """A mistake of the program, as ``verbsim exec --diagnose-format json`` writes it."""

    #: The name of the device.
    device: str
    #: The class, such as ``VS-KEY-01``; ``verbsim explain`` describes it.
    cls: str
    #: ``error``: a definite mistake; ``warning``: the code may be correct.
    level: str
    #: The rule that it breaks.
    rule: str
    #: The mistake, in a sentence.
    sentence: str
    #: File and line in C, if known.
    place: Optional[str]
    #: The callers of the place, from the inside out.
    callers: List[str]
    #: How often the same mistake was found at the same place.
    count: int
    #: The remedy.
    help: str

    def __str__(self) -> str:
        place = f" ({self.place})" if self.place else ""
        return f"{self.device}: {self.cls}: {self.level}: {self.sentence}{place}"


def findings(since: int = 0) -> List[Finding]:
    """Returns the mistakes of the program so far, in this process.

    With a mark ``since``, only those that are new or have changed since; all of them if it is 0. They
    are judged as if the program were stopped here: work that it may still do is a warning, and objects
    that still exist are not reported. Suppressed findings are left out. The list is empty on devices
    that are not simulated.
    """
    find = _function("verbsim_findings")
    if find is None:
        return []
    find.restype = ctypes.c_void_p
    address = find(ctypes.c_int64(_within("since", since, 0, (1 << 63) - 1)))
    if not address:
        raise _error(ctypes.get_errno())
    text = ctypes.string_at(address).decode()
    release = ctypes.CDLL(None).free
    release.argtypes, release.restype = [ctypes.c_void_p], None
    release(address)
    return [_finding(line) for line in text.splitlines()]


def mark(text: str) -> int:
    """Writes a line into the trace, once a device is in use.

    Returns the number of the mark, for `findings`. It is 0 on devices that are not simulated.
    """
    return _call("verbsim_mark", _text("text", text)) if is_simulated() else 0


class Fault:
    """A fault that is in force until it has fired `count` times, or is removed.

    As a context manager it is removed at the end of the block.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self._fired: Optional[int] = None

    @property
    def fired(self) -> int:
        """The number of times it has fired."""
        if self._fired is None:
            return _call("verbsim_fired", ctypes.c_int64(self.number))
        return self._fired

    def remove(self) -> int:
        """Removes the fault, if it is in force. Returns how often it has fired."""
        if self._fired is None:
            self._fired = _call("verbsim_remove", ctypes.c_int64(self.number))
        return self._fired

    def __enter__(self) -> "Fault":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: object, trace: object) -> None:
        try:
            self.remove()
        except OSError:
            # In a child after fork the fault is unknown. The exception of the block is more useful.
            if kind is None:
                raise

    def __repr__(self) -> str:
        return f"Fault({self.number})"


def inject(rules: str) -> Fault:
    """Puts the rules of a fault plan in force. They are TOML: see ``verbsim help faults``.

    Times in a rule count from the first use of a device in this process.
    """
    return Fault(_call("verbsim_inject", _text("rules", rules)))


def drop_packets(count: int = 1, *, device: Optional[Device] = None, qp: Optional[QueuePair] = None) -> Fault:
    """Drops the next ``count`` packets that leave a queue pair.

    These are requests, responses and acknowledgements. With a count of 0 all packets are dropped until
    the fault is removed. The other functions count in the same way.
    """
    return Fault(_call("verbsim_drop_packets_at", _name(device), _number(qp), _count(count)))


def delay_packets(
    seconds: float, count: int = 1, *, device: Optional[Device] = None, qp: Optional[QueuePair] = None
) -> Fault:
    """Delays the next ``count`` packets that leave a queue pair, so that others overtake them.

    The delay is rounded to microseconds.
    """
    if not isinstance(seconds, (int, float)):
        raise TypeError(f"seconds is {seconds!r}: it is a number")
    if not 1e-6 <= seconds <= _LONGEST:
        raise OSError(errno.EINVAL, f"seconds is {seconds}: allowed are 0.000001 to {_LONGEST}")
    by = round(seconds * 1e6)
    return Fault(_call("verbsim_delay_packets_at", _name(device), _number(qp), _count(count), ctypes.c_uint64(by)))


def fail_calls(verb: str, error: int, count: int = 1, *, device: Optional[Device] = None) -> Fault:
    """Makes the next ``count`` calls of a verb on a device fail with an errno value and no other effect.

    The verb has its name in C, such as ``"ibv_post_send"``.
    """
    number = ctypes.c_int(_within("error", error, 1, 4095))
    return Fault(_call("verbsim_fail_calls_at", _name(device), _text("verb", verb), number, _count(count)))


def fail_completions(
    status: int, count: int = 1, *, device: Optional[Device] = None, qp: Optional[QueuePair] = None
) -> Fault:
    """Turns the next ``count`` successful completions of a queue pair into errors with this status.

    They have the effects of a real error: the queue pair goes to the error state, and later work is
    flushed. The status is a number of ``enum ibv_wc_status``, such as ``pyverbs.enums.IBV_WC_RETRY_EXC_ERR``.
    """
    number = ctypes.c_uint32(_within("status", status, 1, 0xFFFFFFFF))
    return Fault(_call("verbsim_fail_completions_at", _name(device), _number(qp), number, _count(count)))


def port_down(device: Device, port: int = 1) -> Fault:
    """Takes a port, from 1, down (``IBV_EVENT_PORT_ERR``) until the fault is removed.

    The port then comes up again (``IBV_EVENT_PORT_ACTIVE``).
    """
    return Fault(_call("verbsim_port_down_at", _name(device), ctypes.c_uint32(_within("port", port, 1, 255))))


def kill_device(device: Device) -> None:
    """Kills a device.

    Each context of it gets ``IBV_EVENT_DEVICE_FATAL``, and its verbs fail with ``EIO``, except those that free an
    object.
    """
    _call("verbsim_kill_device_at", _name(device))


def _function(name: str) -> Optional[Any]:
    """A function of the simulator, if it is in this process."""
    # A preloaded library is in the first. Without a preload, the library that pyverbs has loaded is
    # in the second alone.
    for library, mode in ((None, ctypes.DEFAULT_MODE), ("libibverbs.so.1", os.RTLD_NOLOAD | os.RTLD_LAZY)):
        try:
            return ctypes.CDLL(library, mode, use_errno=True)[name]
        except (OSError, AttributeError):
            continue
    return None


def _call(name: str, *arguments: Any) -> int:
    function = _function(name)
    if function is None:
        what = "the devices are not simulated: run the test under `verbsim exec`"
        raise OSError(errno.ENOTSUP, what)
    function.restype = ctypes.c_int64
    result: int = function(*arguments)
    if result < 0:
        raise _error(-result)
    return result


def _text(name: str, text: str) -> bytes:
    if not isinstance(text, str):
        raise TypeError(f"{name} is {text!r}: it is a string")
    try:
        encoded = text.encode()
    except UnicodeEncodeError as error:
        raise OSError(errno.EINVAL, f"{name} is {text!r}: {error}") from None
    if b"\0" in encoded:
        raise OSError(errno.EINVAL, f"{name} is {text!r}: a string of C has no null character")
    return encoded


def _error(number: int) -> OSError:
    return OSError(number, f"{os.strerror(number)} (the standard error says more)")


def _finding(line: str) -> Finding:
    fields = json.loads(line)
    fields["cls"] = fields.pop("class")
    return Finding(**{name: fields[name] for name in Finding.__dataclass_fields__})


def _name(device: Optional[Device]) -> Optional[bytes]:
    if device is None:
        return None
    name = getattr(device, "name", device)
    if isinstance(name, bytes):
        name = name.decode()
    return _text("device", name)


def _number(qp: Optional[QueuePair]) -> ctypes.c_uint32:
    if qp is None:
        return ctypes.c_uint32(0)
    return ctypes.c_uint32(_within("qp", getattr(qp, "qp_num", qp), 1, 0xFFFFFF))


def _count(count: int) -> ctypes.c_uint64:
    return ctypes.c_uint64(_within("count", count, 0, (1 << 63) - 1))


def _within(name: str, value: int, least: int, most: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} is {value!r}: it is an integer")
    # ctypes would truncate the value.
    if not least <= value <= most:
        raise OSError(errno.EINVAL, f"{name} is {value}: allowed are {least} to {most}")
    return value
