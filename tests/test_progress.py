"""Progress: kept through killed kernels, two notebooks at once, damaged files, full disks and read-only folders."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time

import pytest

from course_utils.classroom import progress


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "progress"))
    monkeypatch.setattr(progress, "_unsaved", {})
    monkeypatch.setattr(progress, "_said", set())
    return tmp_path / "progress"


def test_what_is_noted_is_read_and_lies_in_one_file_a_chapter(place):
    assert progress.note("10", "predictions", "10.a", "về") is True
    progress.note("09", "exercises", "09.1", "right")
    assert progress.read("10")["predictions"] == {"10.a": "về"}
    assert progress.read("09")["exercises"] == {"09.1": "right"}
    assert sorted(file.name for file in place.glob("*.json")) == ["09.json", "10.json"]
    assert "về" in (place / "10.json").read_text(encoding="utf-8")


def _note_many(start):
    for number in range(start, start + 25):
        progress.note("10", "settled", f"claim-{number}", number)


def test_notebooks_that_write_at_the_same_time_lose_nothing():
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_note_many, args=(start,)) for start in (0, 25, 50)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert progress.read("10")["settled"] == {f"claim-{number}": number for number in range(75)}


WRITER = """
from course_utils.classroom import progress
import itertools
for number in itertools.count():
    progress.note("10", "settled", "last", "x" * 2_000_000 + str(number))
"""


@pytest.mark.skipif(os.name == "nt", reason="a process is killed by a POSIX signal")
@pytest.mark.platform
def test_a_killed_kernel_leaves_a_whole_file(place):
    for pause in (0.4, 0.55, 0.7):
        writer = subprocess.Popen([sys.executable, "-c", WRITER])
        deadline = time.monotonic() + 30
        while not (place / "10.json").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(pause)
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        assert progress.read("10")["settled"]["last"].startswith("xxx")
        assert progress.note("10", "predictions", "10.a", "still writable") is True
    assert not list(place.glob("*damaged*"))


@pytest.mark.parametrize("content", ["", "{", "[1]", '{"predictions": 3}', "\x00\x00", "nonsense"])
def test_a_damaged_file_is_set_aside_with_a_message(place, capsys, content):
    place.mkdir(parents=True)
    (place / "10.json").write_text(content, encoding="utf-8")
    assert progress.read("10") == {"predictions": {}, "exercises": {}, "settled": {}}
    aside = list(place.glob("10.damaged-*.json"))
    assert [file.read_text(encoding="utf-8") for file in aside] == [content]
    assert "10.json was damaged and is now 10.damaged-" in capsys.readouterr().err
    assert progress.note("10", "predictions", "10.a", "again") is True


def test_bytes_that_are_no_text_are_set_aside_too(place):
    place.mkdir(parents=True)
    (place / "10.json").write_bytes(b"\xff\xfe\x00")
    assert progress.read("10")["settled"] == {}
    assert len(list(place.glob("10.damaged-*.json"))) == 1


def test_where_nothing_can_be_written_it_says_so_once_and_goes_on(tmp_path, monkeypatch, capsys):
    (tmp_path / "a-file").write_text("not a folder", encoding="utf-8")
    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "a-file"))
    assert progress.note("10", "predictions", "10.a", "one") is False
    assert progress.note("10", "predictions", "10.b", "two") is False
    assert progress.read("10")["predictions"] == {"10.a": "one", "10.b": "two"}
    assert capsys.readouterr().err.count("can't be saved") == 1


def test_what_could_not_be_written_follows_when_it_can(tmp_path, monkeypatch):
    place = tmp_path / "later"
    place.write_text("in the way", encoding="utf-8")
    monkeypatch.setenv("COURSE_PROGRESS", str(place))
    assert progress.note("10", "predictions", "10.a", "one") is False
    place.unlink()
    assert progress.note("10", "predictions", "10.b", "two") is True
    kept = json.loads((place / "10.json").read_text(encoding="utf-8"))
    assert kept["predictions"] == {"10.a": "one", "10.b": "two"}


FULL_DISK = """
import resource, signal
from course_utils.classroom import progress
progress.note("10", "predictions", "10.a", "before")
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))
print(progress.note("10", "predictions", "10.b", "after"), progress.read("10")["predictions"])
"""


@pytest.mark.skipif(os.name == "nt", reason="a full disk is made with a POSIX limit")
@pytest.mark.platform
def test_a_full_disk_keeps_the_old_file(place):
    run = subprocess.run([sys.executable, "-c", FULL_DISK], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False {'10.a': 'before', '10.b': 'after'}"
    assert "File too large" in run.stderr and "Traceback" not in run.stderr
    assert progress.read("10")["predictions"] == {"10.a": "before"}
    assert not list(place.glob("*.new"))


def test_another_programs_lock_is_waited_for_and_then_told(place, monkeypatch, capsys):
    import filelock

    monkeypatch.setattr(progress, "LOCK_SECONDS", 0.05)
    place.mkdir(parents=True)
    with filelock.FileLock(place / "10.lock"):
        assert progress.note("10", "predictions", "10.a", "one") is False
    assert "another program holds it" in capsys.readouterr().err


def test_progress_travels_in_one_file(tmp_path, monkeypatch):
    progress.note("10", "predictions", "10.a", "one")
    progress.note("00", "exercises", "00.1", "right")
    carried = progress.export(tmp_path / "my progress.json")
    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "elsewhere"))
    progress.note("10", "predictions", "10.b", "was here before")
    assert progress.import_(carried) == ["00", "10"]
    assert progress.read("10")["predictions"] == {"10.a": "one", "10.b": "was here before"}
    assert progress.read("00")["exercises"] == {"00.1": "right"}


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"chapters": {"10": 3}}', '{"chapters": []}'])
def test_a_file_that_is_no_export_is_refused(tmp_path, content):
    (tmp_path / "other.json").write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match="holds no progress of this course"):
        progress.import_(tmp_path / "other.json")


@pytest.mark.parametrize("chapter", ["1", "abc", "../10", 10, ""])
def test_a_chapter_is_two_digits(chapter):
    with pytest.raises(ValueError, match="two digits"):
        progress.read(chapter)


def test_an_unknown_section_is_refused():
    with pytest.raises(ValueError, match="use one of predictions, exercises, settled"):
        progress.note("10", "marks", "a", 1)
