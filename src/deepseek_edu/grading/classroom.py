"""Grade a folder of submissions: in parallel, resumable, one bad submission never stops the others.

Each finished submission is appended to ``results.jsonl`` at once, and the reports are written anew from it. A second
run skips what is unchanged: same file content, lab version, cases and grader.
"""

import hashlib
import json
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from deepseek_edu import __version__
from deepseek_edu.grading import class_report
from deepseek_edu.grading.api import GradingError, choose_cases, grade
from deepseek_edu.grading.lab import load_lab

RESULTS = "results.jsonl"
_SKIPPED_NAMES = ("__pycache__", "Thumbs.db", "desktop.ini")
_REPORTS_EVERY = 2.0


@dataclass(frozen=True)
class ClassResult:
    """What a class run leaves.

    Attributes:
        entries: one dictionary per submission, sorted by name, as in report.json.
        graded, reused: how many were run now, and how many were taken from an earlier run.
        complete: False when the grader itself failed on some submission.
    """

    entries: list
    graded: int
    reused: int
    complete: bool


def grade_class(lab, folder, out, seed=None, overlay=None, workers=2, again=False, say=print):
    """Grade every file or folder directly inside `folder`.

    Args:
        lab: as for `grade`.
        folder: one entry per learner; names beginning with a dot are left out.
        out: folder for results.jsonl, report.csv, report.json and report.html; made if missing.
        seed, overlay: as for `grade`.
        workers: how many submissions run at the same time.
        again: ignore earlier results.
        say: called with progress lines.

    Raises:
        GradingError: the folder is missing or empty, or `out` cannot be written.
    """
    lab = load_lab(lab)
    names = _entries(Path(folder))
    cases, mode, _ = choose_cases(lab, seed, overlay)
    out = _out_folder(Path(out), Path(folder))
    about = {
        "lab": lab.id,
        "title": lab.title,
        "version": lab.version,
        "points": lab.points,
        "mode": mode,
        "cases": [{"id": case.id, "function": case.function, "hidden": case.hidden} for case in cases],
        "hidden_not_run": lab.hidden_count if mode == "practice" else 0,
    }
    run = hashlib.sha256(repr((__version__, lab.version, lab.points, lab.limits, cases)).encode()).hexdigest()[:16]
    keys = {name: f"{run}-{_digest(Path(folder) / name)}" for name in names}
    earlier = {} if again else _read_results(out / RESULTS)
    done = {name: earlier[name] for name in names if name in earlier and earlier[name]["key"] == keys[name]}
    todo = [name for name in names if name not in done]
    say(
        f"{lab.id}: {len(names)} submissions, {len(cases)} cases each"
        + (f"; {len(done)} already graded" if done else "")
    )
    if mode == "practice":
        say(f"No seed: only the {len(cases)} visible cases run. For grades give --seed or set DEEPSEEK_EDU_SEED.")
    lock, written = threading.Lock(), [0.0]
    _rewrite(out / RESULTS, done)

    def one(name):
        entry = {**_grade_one(lab, Path(folder) / name, seed, overlay), "name": name, "key": keys[name]}
        with lock:
            _append(out / RESULTS, entry)
            done[name] = entry
            say(f"[{len(done)}/{len(names)}] {_printable(name)}: {entry['headline']}")
            if time.monotonic() - written[0] > _REPORTS_EVERY:
                class_report.write(out, about, _sorted(done))
                written[0] = time.monotonic()

    pool = ThreadPoolExecutor(max_workers=workers, thread_name_prefix="grade")
    try:
        for future in as_completed([pool.submit(one, name) for name in todo]):
            future.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        class_report.write(out, about, _sorted(done))
    entries = _sorted(done)
    say(f"Reports: {out / 'report.html'}, report.csv, report.json")
    return ClassResult(
        entries, len(todo), len(names) - len(todo), all(not entry["internal_error"] for entry in entries)
    )


def _grade_one(lab, path, seed, overlay):
    """An entry for one submission, whatever happens."""
    try:
        if path.is_symlink():
            raise GradingError("this is a link, not a file: hand in the file itself")
        report = grade(lab, path, seed=seed, overlay=overlay)
        return {**report.to_json(), "headline": report.headline(), "internal_error": False}
    except GradingError as error:
        message, internal = str(error), False
    except Exception as error:  # recorded, so that the batch goes on
        message, internal = f"the grader failed: {type(error).__name__}: {error}", True
    problem = {"type": "internal" if internal else "unreadable", "message": message, "line": None, "place": ""}
    return {
        "lab": lab.id,
        "version": lab.version,
        "score": 0.0,
        "points": lab.points,
        "passed": 0,
        "cases": 0,
        "full": False,
        "problem": problem,
        "notes": [],
        "outcomes": [],
        "protections": {},
        "headline": f"not graded: {message}",
        "internal_error": internal,
    }


def _entries(folder):
    if not folder.is_dir():
        raise GradingError(f"there is no folder {folder}")
    names = sorted(
        item.name for item in folder.iterdir() if not item.name.startswith(".") and item.name not in _SKIPPED_NAMES
    )
    if not names:
        raise GradingError(f"the folder {folder} holds no submission")
    return names


def _out_folder(out, folder):
    if out.resolve() == folder.resolve() or folder.resolve() in out.resolve().parents:
        raise GradingError(f"--out {out} lies inside the folder of submissions; choose another place")
    try:
        out.mkdir(parents=True, exist_ok=True)
        probe = out / ".probe"
        probe.write_text("")
        probe.unlink()
    except OSError as error:
        raise GradingError(f"--out {out} cannot be written: {error.strerror}") from None
    return out


def _digest(path):
    """Content of a submission as a short hash; folders count with all names and files below them."""
    digest = hashlib.sha256()
    files = (
        sorted(item for item in path.rglob("*") if item.is_file())
        if path.is_dir() and not path.is_symlink()
        else [path]
    )
    for file in files:
        digest.update(os.fsencode(file.relative_to(path)) + b"\0")
        try:
            if file.is_file() and not file.is_symlink():
                with open(file, "rb") as stream:
                    digest.update(hashlib.file_digest(stream, "sha256").digest())
        except OSError as error:
            digest.update(str(error.errno).encode())
    return digest.hexdigest()[:16]


def _read_results(path):
    """Earlier entries by name; a line cut off by an interruption is left out."""
    entries = {}
    if path.is_file():
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            if (
                isinstance(entry, dict)
                and {"name", "key", "headline", "internal_error"} <= entry.keys()
                and not entry["internal_error"]
            ):
                entries[entry["name"]] = entry
    return entries


def _rewrite(path, entries):
    temporary = path.with_suffix(".new")
    temporary.write_text("".join(_line(entry) for entry in _sorted(entries)), encoding="utf-8")
    temporary.replace(path)


def _append(path, entry):
    with open(path, "a", encoding="utf-8") as file:
        file.write(_line(entry))
        file.flush()
        os.fsync(file.fileno())


def _line(entry):
    return json.dumps(entry, ensure_ascii=True) + "\n"


def _sorted(entries):
    return [entries[name] for name in sorted(entries)]


def _printable(name):
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in name)
