"""A bounded clock: now() -> (earliest, latest), and true time lies inside.

    from timeball_clock import Clock
    with Clock("auto") as clock:
        earliest, latest = clock.now()
        clock.wait_until_after(latest)

Times are integers, nanoseconds since 1970-01-01 UTC.
"""

import ctypes
import pathlib
from typing import NamedTuple, Tuple

__all__ = ["Clock", "ClockError", "Reading", "Untrusted"]

_STATUS = ("unknown", "synchronized", "free_running", "disrupted")
_UNTRUSTED = -2


class ClockError(Exception):
    """The source cannot be opened."""


class Untrusted(Exception):
    """There is no bound that may be relied upon now."""


class Reading(NamedTuple):
    """Everything that is known at one moment."""

    earliest_ns: int
    latest_ns: int
    as_of_ns: int
    void_after_ns: int
    now_ns: int
    max_drift_ppb: int
    status: str


class _Reading(ctypes.Structure):
    _fields_ = [
        ("earliest_ns", ctypes.c_uint64),
        ("latest_ns", ctypes.c_uint64),
        ("as_of_ns", ctypes.c_uint64),
        ("void_after_ns", ctypes.c_uint64),
        ("now_ns", ctypes.c_uint64),
        ("max_drift_ppb", ctypes.c_uint32),
        ("status", ctypes.c_int32),
    ]


def _load() -> ctypes.CDLL:
    lib = ctypes.CDLL(str(pathlib.Path(__file__).parent / "libtimeball_clock.so"))
    u64, pointer = ctypes.c_uint64, ctypes.c_void_p
    signatures = {
        "open": (pointer, [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t]),
        "close": (None, [pointer]),
        "now": (ctypes.c_int, [pointer, ctypes.POINTER(u64), ctypes.POINTER(u64)]),
        "read": (ctypes.c_int, [pointer, ctypes.POINTER(_Reading)]),
        "after": (ctypes.c_int, [pointer, u64]),
        "before": (ctypes.c_int, [pointer, u64]),
        "wait_until_after": (ctypes.c_int, [pointer, u64]),
        "describe": (ctypes.c_size_t, [pointer, ctypes.c_char_p, ctypes.c_size_t]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(lib, "timeball_clock_" + name)
        function.restype, function.argtypes = result, arguments
    return lib


_lib = _load()


class Clock:
    """A clock over one source: "auto", "chrony", "clockbound", "ptp", "kernel", "ntp:a,b,c", "static:5ms", "same-host"."""

    def __init__(self, source: str = "auto"):
        error = ctypes.create_string_buffer(512)
        self._clock = _lib.timeball_clock_open(source.encode(), error, len(error))
        if not self._clock:
            raise ClockError(error.value.decode())

    def close(self) -> None:
        """Ends the clock and its thread."""
        clock, self._clock = self._clock, None
        _lib.timeball_clock_close(clock)

    def __enter__(self) -> "Clock":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def _check(self, result: int) -> int:
        if result == _UNTRUSTED:
            raise Untrusted(self.describe())
        if result < 0:
            raise ValueError("the clock is closed")
        return result

    def now(self) -> Tuple[int, int]:
        """(earliest, latest)."""
        earliest, latest = ctypes.c_uint64(), ctypes.c_uint64()
        self._check(_lib.timeball_clock_now(self._clock, ctypes.byref(earliest), ctypes.byref(latest)))
        return earliest.value, latest.value

    def read(self) -> Reading:
        """Everything that is known, also when it may not be relied upon: look at the status."""
        raw = _Reading()
        if _lib.timeball_clock_read(self._clock, ctypes.byref(raw)) == -1:
            raise ValueError("the clock is closed")
        values = [getattr(raw, name) for name, _ in _Reading._fields_]
        return Reading(*values[:-1], _STATUS[values[-1]])

    def after(self, unix_ns: int) -> bool:
        """Whether the time is certainly past."""
        return self._check(_lib.timeball_clock_after(self._clock, unix_ns)) == 1

    def before(self, unix_ns: int) -> bool:
        """Whether the time is certainly still to come."""
        return self._check(_lib.timeball_clock_before(self._clock, unix_ns)) == 1

    def wait_until_after(self, unix_ns: int) -> None:
        """Blocks until the time is certainly past (other Python threads go on)."""
        self._check(_lib.timeball_clock_wait_until_after(self._clock, unix_ns))

    def describe(self) -> str:
        """The source in use and what it follows, for people."""
        buffer = ctypes.create_string_buffer(1024)
        _lib.timeball_clock_describe(self._clock, buffer, len(buffer))
        return buffer.value.decode()
