"""Makes the wheel from the shared library, with nothing but Python: build_wheel.py LIBRARY OUTPUT_DIRECTORY

The wheel is the package of this directory and the library beside it; it needs no compiler and no dependency where it is installed. Which
machines it says that it runs on is read from the library (platform_tag.py): build on an old system to serve old systems.
"""

import base64
import hashlib
import pathlib
import re
import sys
import zipfile

from platform_tag import NotElf, platforms

HERE = pathlib.Path(__file__).parent


def version() -> str:
    """The crate's own version, or the workspace's where the crate takes that (a published crate has its own)."""
    own = re.search(r'^version = "(.*?)"', (HERE / "../Cargo.toml").read_text(), re.M)
    if own:
        return own.group(1)
    manifest = (HERE / "../../../Cargo.toml").resolve()
    return re.search(r'^\[workspace\.package\].*?^version = "(.*?)"', manifest.read_text(), re.M | re.S).group(1)


def build(library: pathlib.Path, out: pathlib.Path) -> pathlib.Path:
    code = library.read_bytes()
    tags = platforms(code)
    name, info = f"timeball_clock-{version()}", f"timeball_clock-{version()}.dist-info"
    files = {
        "timeball_clock/__init__.py": (HERE / "timeball_clock/__init__.py").read_bytes(),
        "timeball_clock/libtimeball_clock.so": code,
        f"{info}/METADATA": (
            f"Metadata-Version: 2.1\nName: timeball-clock\nVersion: {version()}\n"
            "Summary: A bounded clock: now() -> (earliest, latest), and true time lies inside.\n"
            "License: Apache-2.0\nRequires-Python: >=3.8\n"
        ).encode(),
        f"{info}/WHEEL": (
            "Wheel-Version: 1.0\nGenerator: build_wheel.py\nRoot-Is-Purelib: false\n"
            + "".join(f"Tag: py3-none-{tag}\n" for tag in tags)
        ).encode(),
    }

    def record(path: str, data: bytes) -> str:
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        return f"{path},sha256={digest},{len(data)}\n"

    files[f"{info}/RECORD"] = ("".join(record(p, d) for p, d in files.items()) + f"{info}/RECORD,,\n").encode()
    out.mkdir(parents=True, exist_ok=True)
    wheel = out / f"{name}-py3-none-{'.'.join(tags)}.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in files.items():
            # A fixed time, so that the same inputs give the same wheel.
            archive.writestr(zipfile.ZipInfo(path, (2020, 1, 1, 0, 0, 0)), data, zipfile.ZIP_DEFLATED)
    return wheel


if __name__ == "__main__":
    try:
        print(build(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])))
    except NotElf as error:
        sys.exit(f"{sys.argv[1]}: {error}; give a shared library of Linux, as cargo's --crate-type cdylib makes it")
