"""The reports of a class run: report.csv for a spreadsheet, report.json for programs, report.html for people.

The page is one file that asks nothing of the network and runs no script.
"""

import csv
import html
import io
import json
import os

from deepseek_edu.grading.harness import decode
from deepseek_edu.grading.report import MARKS, PROTECTIONS, WORDS, show_call
from deepseek_edu.grading.runner import NOT_GRADED, PASSED

_STYLE = """
:root { color-scheme: light dark; --line: #8886; --good: #17693a; --bad: #a3221b; --muted: #5a5f66; }
@media (prefers-color-scheme: dark) { :root { --good: #6fd39b; --bad: #ff9d94; --muted: #a8adb5; } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .35rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top; }
td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.scroll { overflow-x: auto; }
code { font: .9em ui-monospace, monospace; overflow-wrap: anywhere; }
.good { color: var(--good); }
.bad { color: var(--bad); }
.muted { color: var(--muted); }
.failure { margin-bottom: .6rem; }
meter { width: 8rem; }
details { margin: .3rem 0; }
summary { cursor: pointer; }
@media (max-width: 44rem) {
  .people, .people tbody, .people tr, .people th, .people td { display: block; border: 0; }
  .people thead { display: none; }
  .people tr { border-bottom: 1px solid var(--line); padding: .5rem 0; }
  .people th, .people td { padding: .15rem 0; }
  .people td.number { display: inline-block; margin-right: 1rem; }
}
"""


def write(out, about, entries):
    """Write the three reports into the folder `out`, each whole or not at all."""
    _replace(out / "report.csv", csv_text(about, entries))
    _replace(out / "report.json", json.dumps({**about, "submissions": entries}, indent=1, ensure_ascii=False) + "\n")
    _replace(out / "report.html", html_text(about, entries))


def _replace(path, text):
    temporary = path.with_name(path.name + ".new")
    temporary.write_text(text, encoding="utf-8", errors="backslashreplace", newline="")
    os.replace(temporary, path)


def csv_text(about, entries):
    """One row per submission: name, score, points, passed, cases, problem, then the status of each case."""
    names = [case["id"] for case in about["cases"]]
    buffer = io.StringIO()
    table = csv.writer(buffer, lineterminator="\n")
    table.writerow(["submission", "score", "points", "passed", "cases", "problem", *names])
    for entry in entries:
        status = _status(entry)
        problem = _problem(entry)
        row = [entry["name"], entry["score"], entry["points"], entry["passed"], len(names), problem]
        table.writerow([_cell(value) for value in row] + [status.get(name, NOT_GRADED) for name in names])
    return buffer.getvalue()


def _cell(value):
    """A cell that a spreadsheet takes as text: names and messages come from learners."""
    if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")):
        return "'" + value
    return value


def _status(entry):
    return {outcome["id"]: outcome["status"] for outcome in entry["outcomes"]}


def _problem(entry):
    problem = entry["problem"]
    if not problem:
        return ""
    return f"{problem['place']}: {problem['message']}" if problem.get("place") else problem["message"]


def html_text(about, entries):
    """The page: summary, the cases with how many passed, one row with details per submission."""
    title = f"{about['title']}: {len(entries)} submissions"
    full = sum(entry["full"] for entry in entries)
    stopped = sum(entry["problem"] is not None for entry in entries)
    mean = sum(entry["score"] for entry in entries) / max(1, len(entries))
    mode = (
        "Visible cases only, no seed was given: practice, not grades."
        if about["mode"] == "practice"
        else f"{sum(case['hidden'] for case in about['cases'])} of {len(about['cases'])} cases are hidden."
    )
    cases = "".join(_case_row(case, entries) for case in about["cases"])
    rows = "".join(_entry_row(entry, about) for entry in entries)
    missing = sorted(
        {
            name
            for entry in entries
            if entry["protections"]
            for name in PROTECTIONS
            if not entry["protections"].get(name)
        }
    )
    held = (
        f"<p class='bad'>Not protected on the machine that graded: {', '.join(missing)}.</p>"
        if missing
        else "<p class='muted'>All protections held: limits on time and memory, files, network, processes, signals.</p>"
    )
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<title>{_text(title)}</title><link rel="icon" href="data:,"><style>{_STYLE}</style></head><body><main>
<h1>{_text(about["title"])}</h1>
<p>Lab <code>{_text(about["lab"])}</code>, version <code>{_text(about["version"])}</code>,
{about["points"]:g} points. {mode}</p>
<p><strong>{len(entries)}</strong> submissions: <strong>{full}</strong> with full points,
<strong>{stopped}</strong> could not be
graded, mean <strong>{mean:.2f}</strong> points.</p>
{held}
<h2>Submissions</h2>
<div class="scroll" tabindex="0" role="region" aria-label="Submissions"><table class="people">
<thead><tr><th scope="col">submission</th><th scope="col">score</th><th scope="col">passed</th>
<th scope="col">what happened</th></tr></thead>
<tbody>{rows}</tbody></table></div>
<h2>Cases</h2>
<div class="scroll" tabindex="0" role="region" aria-label="Cases"><table>
<thead><tr><th scope="col">case</th><th scope="col">function</th><th scope="col">passed</th></tr></thead>
<tbody>{cases}</tbody></table></div>
</main></body></html>
"""


def _text(value):
    return html.escape(str(value))


def _case_row(case, entries):
    ran = [status for entry in entries if (status := _status(entry).get(case["id"]))]
    passed = sum(status == PASSED for status in ran)
    label = f"{passed} of {len(ran)}"
    hidden = " <span class='muted'>hidden</span>" if case["hidden"] else ""
    bar = f"<meter min='0' max='{max(1, len(ran))}' value='{passed}' aria-label='{label}'></meter>"
    return (
        f"<tr><th scope='row'>{_text(case['id'])}{hidden}</th><td><code>{_text(case['function'])}</code></td>"
        f"<td>{bar} {label}</td></tr>"
    )


def _entry_row(entry, about):
    if entry["problem"]:
        what = f"<span class='bad'>not graded</span> {_text(_problem(entry))}"
    elif entry["full"]:
        what = "<span class='good'>✓ every case passed</span>"
    else:
        first, *others = [outcome for outcome in entry["outcomes"] if outcome["status"] != PASSED]
        what = _failure(first)
        if others:
            inside = "".join(_failure(outcome) for outcome in others[:50])
            what += f"<details><summary>{len(others)} more did not pass</summary>{inside}</details>"
    notes = "".join(f"<div class='muted'>{_text(note)}</div>" for note in entry["notes"])
    return (
        f"<tr><th scope='row'>{_text(entry['name'])}</th>"
        f"<td class='number'>{entry['score']:g} / {entry['points']:g} points</td>"
        f"<td class='number'>{entry['passed']} / {len(about['cases'])} cases</td><td>{what}{notes}</td></tr>"
    )


def _failure(outcome):
    replay = (
        f"<div class='muted'>replay token <code>{_text(outcome['replay'])}</code></div>" if outcome["replay"] else ""
    )
    try:
        call = show_call(outcome["function"], [decode(arg) for arg in outcome["args"]])
    except (ValueError, TypeError):
        call = outcome["function"]
    return (
        f"<div class='failure'><span class='bad'>{MARKS[outcome['status']]} {WORDS[outcome['status']]}</span> "
        f"<strong>{_text(outcome['id'])}</strong><br>{_text(outcome['message'])}<br>"
        f"<code>{_text(call)}</code>{replay}</div>"
    )
