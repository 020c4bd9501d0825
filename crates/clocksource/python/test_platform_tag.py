"""python3 test_platform_tag.py: libraries of other machines, written here byte by byte."""

import struct
import unittest

from platform_tag import NotElf, needs, platforms

BASE = 0x10000


def library(machine=62, libraries=("libc.so.6",), versions=("GLIBC_2.2.5",), wide=True, order="<", dynamic=True) -> bytes:
    """A library of one segment: headers, names, version needs (all of the first library), dynamic section."""
    names, places = b"\0", {}
    for name in (*libraries, *versions):
        places[name] = len(names)
        names += name.encode() + b"\0"
    header = 64 + 2 * 56 if wide else 52 + 2 * 32
    need_at = header + len(names)
    need = struct.pack(order + "HHIII", 1, len(versions), places[libraries[0]] if libraries else 0, 16, 0)
    for n, name in enumerate(versions):
        need += struct.pack(order + "IHHII", 0, 0, n + 2, places[name], 16 if n + 1 < len(versions) else 0)
    entries = [(1, places[name]) for name in libraries] + [(5, BASE + header)]
    entries += [(0x6FFFFFFE, BASE + need_at), (0x6FFFFFFF, 1)] * bool(versions) + [(0, 0)]
    dynamic_at = need_at + len(need)
    section = b"".join(struct.pack(order + ("qQ" if wide else "iI"), *entry) for entry in entries)
    size = dynamic_at + len(section)
    ident = b"\x7fELF" + bytes([2 if wide else 1, 1 if order == "<" else 2, 1]) + bytes(9)
    segments = [(1, 0, BASE, size)] + [(2, dynamic_at, BASE + dynamic_at, len(section))] * dynamic
    if wide:
        head = ident + struct.pack(order + "HHIQQQIHHHHHH", 3, machine, 1, 0, 64, 0, 0, 64, 56, len(segments), 0, 0, 0)
        table = [struct.pack(order + "IIQQQQQQ", k, 4, at, v, v, n, n, 8) for k, at, v, n in segments]
    else:
        head = ident + struct.pack(order + "HHIIIIIHHHHHH", 3, machine, 1, 0, 52, 0, 0, 52, 32, len(segments), 0, 0, 0)
        table = [struct.pack(order + "IIIIIIII", k, at, v, v, n, n, 4, 4) for k, at, v, n in segments]
    return (head + b"".join(table)).ljust(header, b"\0") + names + need + section


class PlatformTag(unittest.TestCase):
    def test_the_newest_symbol_decides(self):
        old = ("GLIBC_2.2.5", "GLIBC_2.14", "GCC_3.3")
        self.assertEqual(platforms(library(versions=old)), ["manylinux_2_17_x86_64", "manylinux2014_x86_64"])
        self.assertEqual(platforms(library(versions=(*old, "GLIBC_2.9"))), ["manylinux_2_17_x86_64", "manylinux2014_x86_64"])
        self.assertEqual(platforms(library(versions=(*old, "GLIBC_2.34", "GLIBC_2.28"))), ["manylinux_2_34_x86_64"])
        self.assertEqual(platforms(library(versions=("GLIBC_ABI_DT_RELR",))), ["manylinux_2_36_x86_64"])

    def test_the_architecture_is_the_files(self):
        cases = [(183, True, "<", "aarch64"), (22, True, ">", "s390x"), (3, False, "<", "i686"), (243, True, "<", "riscv64")]
        for machine, wide, order, name in cases:
            data = library(machine=machine, wide=wide, order=order, versions=("GLIBC_2.30",))
            self.assertEqual(platforms(data), [f"manylinux_2_30_{name}"])

    def test_what_not_every_system_has_is_of_this_machine_only(self):
        system = ("libc.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2")
        self.assertIn("manylinux_2_17_x86_64", platforms(library(libraries=system)))
        for libraries in [("libc.so.6", "libssl.so.3"), ("libc.musl-x86_64.so.1",), ()]:
            self.assertEqual(platforms(library(libraries=libraries, versions=())), ["linux_x86_64"], libraries)
        for version in ["GLIBC_PRIVATE", "GCC_14.0.0", "GLIBC_ABI_OF_TOMORROW", "OPENSSL_3.0.0"]:
            self.assertEqual(platforms(library(versions=("GLIBC_2.2.5", version))), ["linux_x86_64"], version)

    def test_needs_are_read_as_they_were_written(self):
        found = needs(library(libraries=("libc.so.6", "libm.so.6"), versions=("GLIBC_2.2.5", "GLIBC_2.17")))
        self.assertEqual((found.architecture, found.libraries), ("x86_64", ["libc.so.6", "libm.so.6"]))
        self.assertEqual(found.versions, {("libc.so.6", "GLIBC_2.2.5"), ("libc.so.6", "GLIBC_2.17")})

    def test_other_files_are_refused(self):
        whole = library()
        for data in [b"", b"\x7fELF", b"!<arch>\n" + bytes(60), library(machine=9), library(dynamic=False)]:
            self.assertRaises(NotElf, platforms, data)
        for n in range(len(whole)):
            try:
                platforms(whole[:n])
            except NotElf:
                pass


if __name__ == "__main__":
    unittest.main()
