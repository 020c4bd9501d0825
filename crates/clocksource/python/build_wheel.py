"""Makes the wheel from the shared library, with nothing but Python: build_wheel.py LIBRARY OUTPUT_DIRECTORY

The wheel is the package of this directory and the library beside it; it needs no compiler and no dependency where it is installed.
"""

import base64
import hashlib
import pathlib
import platform
import re
import sys
import zipfile

HERE = pathlib.Path(__file__).parent


def version() -> str:
    manifest = (HERE / "../../../Cargo.toml").resolve()
    found = re.search(r'^\[workspace\.package\].*?^version = "(.*?)"', manifest.read_text(), re.M | re.S)
    return found.group(1)


def build(library: pathlib.Path, out: pathlib.Path) -> pathlib.Path:
    tag = f"py3-none-linux_{platform.machine()}"
    name, info = f"timeball_clock-{version()}", f"timeball_clock-{version()}.dist-info"
    files = {
        "timeball_clock/__init__.py": (HERE / "timeball_clock/__init__.py").read_bytes(),
        "timeball_clock/libtimeball_clock.so": library.read_bytes(),
        f"{info}/METADATA": (
            f"Metadata-Version: 2.1\nName: timeball-clock\nVersion: {version()}\n"
            "Summary: A bounded clock: now() -> (earliest, latest), and true time lies inside.\n"
            "License: Apache-2.0\nRequires-Python: >=3.8\n"
        ).encode(),
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: build_wheel.py\nRoot-Is-Purelib: false\nTag: {tag}\n".encode(),
    }

    def record(path: str, data: bytes) -> str:
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        return f"{path},sha256={digest},{len(data)}\n"

    files[f"{info}/RECORD"] = ("".join(record(p, d) for p, d in files.items()) + f"{info}/RECORD,,\n").encode()
    out.mkdir(parents=True, exist_ok=True)
    wheel = out / f"{name}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in files.items():
            # A fixed time, so that the same inputs give the same wheel.
            archive.writestr(zipfile.ZipInfo(path, (2020, 1, 1, 0, 0, 0)), data, zipfile.ZIP_DEFLATED)
    return wheel


if __name__ == "__main__":
    print(build(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])))
