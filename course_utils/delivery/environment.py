"""The virtual environment that the course runs in: where it is, whether it is sound, how to go on inside it.

Standard library only: this runs before anything is installed.
"""

import csv
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from course_utils.delivery import CourseError
from course_utils.delivery.pip_errors import explain
from course_utils.places import ROOT

OLDEST = (3, 11)
ON_WINDOWS = os.name == "nt"


@dataclass(frozen=True)
class Environment:
    """A virtual environment by its folder, which may not exist yet."""

    folder: Path

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / ("Scripts/python.exe" if ON_WINDOWS else "bin/python")

    @property
    def version(self) -> tuple[int, ...]:
        """Its Python's version, such as (3, 12, 1), written when it was made; () where that can't be read."""
        try:
            text = (self.folder / "pyvenv.cfg").read_text(encoding="utf-8")
        except OSError:
            return ()
        found = re.search(r"^version(?:_info)?\s*=\s*(\d+)\.(\d+)(?:\.(\d+))?", text, re.MULTILINE)
        return tuple(int(part) for part in found.groups(default="0")) if found else ()

    @property
    def packages(self) -> Path:
        """Its site-packages folder."""
        return self.folder / ("Lib" if ON_WINDOWS else "lib/python{}.{}".format(*self.version)) / "site-packages"

    def is_current(self) -> bool:
        """True if this very program runs inside it."""
        return Path(sys.prefix).resolve() == self.folder.resolve()

    def usable(self) -> bool:
        """True if it has an interpreter that is new enough. The link dangles when Python was removed."""
        return self.python.exists() and self.version >= OLDEST

    def has(self, package: str, version: str) -> bool:
        """True if the package is installed in this version, whatever its local label (2.13.0+cpu)."""
        return self.usable() and any(self.packages.glob(f"{package}-{version}*.dist-info"))


def course_environment() -> Environment:
    """The environment in .venv, or in the folder that COURSE_VENV names."""
    named = os.environ.get("COURSE_VENV")
    return Environment(Path(named).expanduser().absolute() if named else ROOT / ".venv")


def make_sound(environment: Environment) -> None:
    """Create the environment where it is missing, broken or too old; repair what a stop left half done.

    Raises CourseError or OSError where it can't be created, CourseError where COURSE_VENV names a folder of
    something else.
    """
    if environment.is_current() or (environment.usable() and _has_pip(environment)):
        _forget_half_installed(environment)
        return
    _refuse_foreign(environment.folder)
    print(f"Creating {environment.folder}", flush=True)
    _create(environment.folder)


def pip(environment: Environment, *arguments: str | Path) -> None:
    """Run the environment's pip, its progress on the screen. Raises CourseError with the reason."""
    log = environment.folder / "course-pip.log"
    log.write_text("", encoding="utf-8")  # pip appends; and where this fails, pip would fail without a log
    command = [environment.python, "-m", "pip", "--disable-pip-version-check", "--log", log, *arguments]
    if subprocess.call([str(part) for part in command], cwd=ROOT) != 0:
        text = log.read_text(encoding="utf-8", errors="replace")
        raise CourseError(explain(text, shutil.disk_usage(environment.folder).free))


def become(command: Sequence[str]) -> NoReturn:
    """Go on as another program; on Windows, where a process can't, wait for it and exit with its status."""
    sys.stdout.flush()
    if not ON_WINDOWS:
        os.execv(command[0], command)
    child = subprocess.Popen(command)
    while True:
        try:
            sys.exit(child.wait())
        except KeyboardInterrupt:  # the child has it too, and decides
            continue


def _has_pip(environment: Environment) -> bool:
    answer = subprocess.run([environment.python, "-m", "pip", "--version"], capture_output=True, cwd=ROOT)
    return answer.returncode == 0


def _refuse_foreign(folder: Path) -> None:
    """Creating clears the folder, so a folder of other things is left alone."""
    foreign = folder != ROOT / ".venv" and folder.exists() and not (folder / "pyvenv.cfg").exists()
    if foreign and (not folder.is_dir() or any(folder.iterdir())):
        raise CourseError(
            f"COURSE_VENV names {folder}, which is no virtual environment: name a new folder, or unset it."
        )


def _create(folder: Path) -> None:
    if not (importlib.util.find_spec("venv") and importlib.util.find_spec("ensurepip")):
        package = "python{}.{}-venv".format(*sys.version_info)
        raise CourseError(
            f"This Python can't create virtual environments: on Debian and Ubuntu run "
            f"'sudo apt install {package}'; elsewhere install Python's venv and ensurepip modules."
        )
    import venv

    try:
        venv.EnvBuilder(clear=True, symlinks=not ON_WINDOWS, with_pip=True).create(folder)
    except subprocess.CalledProcessError as error:
        output = (error.output or b"").decode(errors="replace")
        free = shutil.disk_usage(folder).free
        raise CourseError(explain(output, free, f"pip can't be put into {folder}: {output}")) from error


def _forget_half_installed(environment: Environment) -> None:
    """Make pip install anew what a killed install left incomplete: pip itself would take it for whole."""
    for info in environment.packages.glob("*.dist-info"):
        if not _is_whole(info):
            print(
                f"{info.name.removesuffix('.dist-info')} is incomplete: it will be installed again",
                flush=True,
            )
            shutil.rmtree(info)


def _is_whole(info: Path) -> bool:
    """True if pip finished (it writes INSTALLER last) and every file has the size that was recorded."""
    try:
        with (info / "RECORD").open(encoding="utf-8", newline="") as record:
            sizes = [(path, int(size)) for path, _, size in csv.reader(record) if size]
        return (info / "INSTALLER").exists() and all(
            (info.parent / path).stat().st_size == size for path, size in sizes
        )
    except (OSError, ValueError):
        return False
