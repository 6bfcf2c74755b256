"""Small real packages, made on the spot, so that real installs need no network."""

import hashlib
import zipfile
from collections.abc import Mapping
from importlib.metadata import distribution
from pathlib import Path


def make_wheel(folder: Path, name: str, version: str, files: Mapping[str, bytes]) -> Path:
    """Write a pure-Python wheel that holds the files. Returns its path."""
    info = f"{name}-{version}.dist-info"
    everything = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    return _pack(folder / f"{name}-{version}-py3-none-any.whl", everything, f"{info}/RECORD")


def repack(folder: Path, name: str) -> Path:
    """A wheel of an installed pure-Python package, from its own files."""
    installed = distribution(name)
    left_out = ("INSTALLER", "REQUESTED", "RECORD", "direct_url.json")
    files = {
        path.as_posix(): path.locate().read_bytes()
        for path in installed.files or []
        if path.suffix != ".pyc" and ".." not in path.parts and path.name not in left_out
    }
    record = next(path for path in installed.files or [] if path.name == "RECORD").as_posix()
    return _pack(folder / f"{name}-{installed.version}-py3-none-any.whl", files, record)


def pinned(wheel: Path) -> str:
    """The line of a requirements file that pins the wheel by its hash."""
    name, version = wheel.name.split("-")[:2]
    return f"{name}=={version} --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n"


def _pack(wheel: Path, files: Mapping[str, bytes], record: str) -> Path:
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
        archive.writestr(record, "".join(f"{name},,\n" for name in [*files, record]))
    return wheel
