"""Which machines a shared library runs on, as wheels say it: derived from the ELF file alone, not from the machine that builds.

A `manylinux_2_28_x86_64` wheel (PEP 600) promises to run on every Linux of that architecture with glibc 2.28 or newer. That holds where the
library needs nothing but the system libraries that PEP 600 counts on, and no symbol version that is newer than glibc 2.28. Both stand in the
dynamic section: DT_NEEDED, and the version needs that DT_VERNEED points to. Where it does not hold, or it cannot be told, the tag is
`linux_<architecture>`, which promises this machine only (and package indexes refuse).

What the file cannot tell: whether it was compiled for newer processors than its architecture's first (`-C target-cpu`). Do not.

The layouts are those of the System V ABI and of the Linux Standard Base's symbol versioning.
"""

import re
import struct
from typing import Dict, List, NamedTuple, Set, Tuple

# e_machine, class (1: 32, 2: 64 bit), byte order (1: little, 2: big) -> what wheels call it.
ARCHITECTURES = {
    (62, 2, 1): "x86_64",
    (183, 2, 1): "aarch64",
    (21, 2, 1): "ppc64le",
    (22, 2, 2): "s390x",
    (243, 2, 1): "riscv64",
    (3, 1, 1): "i686",
}
# The libraries that every glibc system has (the list of auditwheel's policies, as far as a library without windows can need them).
SYSTEM_LIBRARIES = re.compile(
    r"(libc\.so\.6|libm\.so\.6|libdl\.so\.2|librt\.so\.1|libpthread\.so\.0|libgcc_s\.so\.1|ld-linux[-\w]*\.so\.[12]|ld64\.so\.[12])$"
)
# Rust's own floor, and the oldest that pip still meets; it has a second name, which older pips know.
GLIBC_MIN = (2, 17)
OLD_NAMES = {(2, 17): ["manylinux2014"]}
# What libgcc has on the systems of GLIBC_MIN.
GCC_MAX = (4, 8, 0)
# Not a release but a feature of the loader, and the release that brought it.
ABI_FEATURES = {"GLIBC_ABI_DT_RELR": (2, 36)}

DT_NEEDED, DT_STRTAB, DT_VERNEED, DT_VERNEEDNUM = 1, 5, 0x6FFFFFFE, 0x6FFFFFFF
PT_LOAD, PT_DYNAMIC = 1, 2


class NotElf(Exception):
    """The file is not a library whose tag can be told."""


class Needs(NamedTuple):
    """What a library needs of the machine that it is loaded on."""

    architecture: str
    libraries: List[str]
    # (library, version name), for example ("libc.so.6", "GLIBC_2.17").
    versions: Set[Tuple[str, str]]


class _File:
    """An ELF file, its words read in its own class and byte order."""

    def __init__(self, data: bytes):
        if data[:4] != b"\x7fELF" or len(data) < 20 or data[4] not in (1, 2) or data[5] not in (1, 2):
            raise NotElf("not an ELF file")
        self.data, self.wide, self.order = data, data[4] == 2, "<" if data[5] == 1 else ">"

    def read(self, form: str, at: int) -> tuple:
        try:
            return struct.unpack_from(self.order + form, self.data, at)
        except struct.error as error:
            raise NotElf(f"the file is cut: {error}") from error

    def text(self, at: int) -> str:
        end = self.data.find(b"\0", at)
        if end < 0:
            raise NotElf("a name has no end")
        return self.data[at:end].decode("ascii", "replace")

    def segments(self) -> List[Tuple[int, int, int, int]]:
        """(type, offset, address, size in the file) of each program header."""
        at, size, count = (self.read("Q", 32) + self.read("HH", 54)) if self.wide else (self.read("I", 28) + self.read("HH", 42))
        found = []
        for n in range(count):
            if self.wide:
                kind, _, offset, address, _, length = self.read("IIQQQQ", at + n * size)
            else:
                kind, offset, address, _, length = self.read("IIIII", at + n * size)
            found.append((kind, offset, address, length))
        return found


def needs(data: bytes) -> Needs:
    """What the library in `data` needs."""
    elf = _File(data)
    (machine,) = elf.read("H", 18)
    architecture = ARCHITECTURES.get((machine, data[4], data[5]))
    if architecture is None:
        raise NotElf(f"no name is known for machine {machine}")
    segments = elf.segments()

    def offset(address: int) -> int:
        for kind, at, start, length in segments:
            if kind == PT_LOAD and start <= address < start + length:
                return at + address - start
        raise NotElf(f"address {address:#x} is not in the file")

    dynamic: Dict[int, List[int]] = {}
    for kind, at, _, length in segments:
        if kind == PT_DYNAMIC:
            form, step = ("qQ", 16) if elf.wide else ("iI", 8)
            for place in range(at, at + length, step):
                tag, value = elf.read(form, place)
                if tag == 0:
                    break
                dynamic.setdefault(tag, []).append(value)
    if DT_STRTAB not in dynamic:
        raise NotElf("not a shared library: it has no dynamic section")
    names = offset(dynamic[DT_STRTAB][0])
    versions = set()
    at = offset(dynamic[DT_VERNEED][0]) if DT_VERNEED in dynamic else 0
    for _ in range(dynamic.get(DT_VERNEEDNUM, [0])[0]):
        _, count, library, first, following = elf.read("HHIII", at)
        place = at + first
        for _ in range(count):
            _, _, _, name, next_place = elf.read("IHHII", place)
            versions.add((elf.text(names + library), elf.text(names + name)))
            place += next_place
        at += following
    return Needs(architecture, [elf.text(names + n) for n in dynamic.get(DT_NEEDED, [])], versions)


def _numbers(text: str) -> Tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


def glibc(wanted: Needs) -> Tuple[int, ...]:
    """The oldest glibc that has everything; () where the library needs something that glibc systems need not have."""
    oldest = GLIBC_MIN
    if not wanted.libraries or not all(SYSTEM_LIBRARIES.match(name) for name in wanted.libraries):
        return ()
    for _, version in wanted.versions:
        release = re.match(r"GLIBC_(2\.\d+(\.\d+)?)$", version)
        gcc = re.match(r"GCC_(\d+\.\d+(\.\d+)?)$", version)
        if release:
            oldest = max(oldest, _numbers(release.group(1))[:2])
        elif version in ABI_FEATURES:
            oldest = max(oldest, ABI_FEATURES[version])
        elif not gcc or _numbers(gcc.group(1)) > GCC_MAX:
            return ()
    return oldest


def platforms(data: bytes) -> List[str]:
    """The platform tags of a wheel with this library, newest kind of name first."""
    wanted = needs(data)
    oldest = glibc(wanted)
    if not oldest:
        return [f"linux_{wanted.architecture}"]
    names = [f"manylinux_{oldest[0]}_{oldest[1]}"] + OLD_NAMES.get(oldest, [])
    return [f"{name}_{wanted.architecture}" for name in names]
