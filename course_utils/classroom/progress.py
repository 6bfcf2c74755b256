"""What the learner has done, kept outside the notebooks: one small JSON file a chapter.

Every change reads the file, alters one entry and replaces the file in one step, under a lock: two notebooks that
are open at once lose nothing, and a killed kernel leaves the old file or the new one, never half of one.
Nothing here raises at a learner. What can't be kept on the disk is kept until the kernel stops, and said once.
"""

import json
import os
import re
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import filelock
import platformdirs

from course_utils.places import replacing

SECTIONS = ("predictions", "exercises", "settled")
LOCK_SECONDS = 5
Chapter = dict[str, dict[str, Any]]

_unsaved: dict[tuple[Path, str], Chapter] = {}  # what the disk refused, by folder and chapter
_said: set[str] = set()


def folder() -> Path:
    """Where progress lives: the folder that COURSE_PROGRESS names, else the user's own data folder."""
    named = os.environ.get("COURSE_PROGRESS")
    return Path(named) if named else platformdirs.user_data_path("course_utils") / "progress"


def read(chapter: str) -> Chapter:
    """The chapter's progress as {"predictions": {...}, "exercises": {...}, "settled": {...}}. Never raises."""
    _check_chapter(chapter)
    return _merge(_load(_file(chapter)), _unsaved.get((folder(), chapter), {}))


def note(chapter: str, section: str, key: str, value: Any) -> bool:
    """Keep one JSON value under section and key. True if it is on the disk; else it lasts as long as the kernel."""
    _check_chapter(chapter)
    if section not in SECTIONS:
        raise ValueError(f"section {section!r}: use one of {', '.join(SECTIONS)}")
    try:
        _change(chapter, {section: {key: value}})
    except (OSError, filelock.Timeout) as error:
        _unsaved.setdefault((folder(), chapter), {}).setdefault(section, {})[key] = value
        _say_once(f"Your progress can't be saved in {folder()} ({_reason(error)}). It lasts until the kernel stops.")
        return False
    return True


def export(path: Path | str) -> Path:
    """Write all progress into one file, to carry away before a Binder server vanishes. Returns the file's path."""
    chapters = {file.stem: read(file.stem) for file in sorted(folder().glob("[0-9][0-9].json"))}
    chapters |= {name: read(name) for where, name in _unsaved if where == folder()}
    path = Path(path)
    _replace(path, {"course progress": 1, "chapters": chapters})
    return path


def import_(path: Path | str) -> list[str]:
    """Add the progress in an exported file to what is here (the file wins where both have an entry).

    Returns the chapters found in it. Raises ValueError where the file is no export of this course.
    """
    try:
        chapters = json.loads(Path(path).read_text(encoding="utf-8"))["chapters"]
        tidy = {name: _tidy(chapter) for name, chapter in chapters.items() if _is_chapter(name)}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} holds no progress of this course: choose a file that export() wrote") from error
    for name, chapter in tidy.items():
        _change(name, chapter)
    return sorted(tidy)


def _change(chapter: str, news: Chapter) -> None:
    file = _file(chapter)
    file.parent.mkdir(parents=True, exist_ok=True)
    with filelock.FileLock(file.with_suffix(".lock"), timeout=LOCK_SECONDS):
        unsaved = _unsaved.get((folder(), chapter), {})
        _replace(file, _merge(_load(file), unsaved, news))
    _unsaved.pop((folder(), chapter), None)


def _replace(file: Path, content: dict) -> None:
    with replacing(file) as new, new.open("w", encoding="utf-8", newline="\n") as out:
        json.dump(content, out, ensure_ascii=False, indent=1, sort_keys=True)


def _load(file: Path) -> Chapter:
    try:
        return _tidy(json.loads(file.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return _tidy({})
    except OSError as error:
        _say_once(f"Your progress in {file} can't be read ({_reason(error)}).")
    except (ValueError, TypeError):
        _set_aside(file)
    return _tidy({})


def _set_aside(file: Path) -> None:
    aside = file.with_name(f"{file.stem}.damaged-{datetime.now():%Y%m%d-%H%M%S}.json")
    try:
        file.replace(aside)
        _say_once(f"{file.name} was damaged and is now {aside.name}; progress in chapter {file.stem} starts anew.")
    except OSError as error:
        _say_once(f"{file} is damaged and can't be set aside ({_reason(error)}).")


def _tidy(content: Any) -> Chapter:
    """The three sections, each a dictionary; TypeError for anything else."""
    if not isinstance(content, dict) or not all(isinstance(content.get(name, {}), dict) for name in SECTIONS):
        raise TypeError("progress is a dictionary of dictionaries")
    return {name: content.get(name, {}) for name in SECTIONS}


def _merge(*chapters: Chapter) -> Chapter:
    return {name: {key: value for one in chapters for key, value in one.get(name, {}).items()} for name in SECTIONS}


def _file(chapter: str) -> Path:
    return folder() / f"{chapter}.json"


def _is_chapter(name: str) -> bool:
    return bool(re.fullmatch(r"\d\d", name))


def _check_chapter(chapter: str) -> None:
    if not isinstance(chapter, str) or not _is_chapter(chapter):
        raise ValueError(f"chapter {chapter!r}: give its two digits as text, such as '10'")


def _reason(error: BaseException) -> str:
    return getattr(error, "strerror", None) or "another program holds it"


def _say_once(message: str) -> None:
    if message not in _said:
        _said.add(message)
        print(message, file=sys.stderr)
