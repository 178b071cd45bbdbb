"""The result of grading one submission: score, one entry per case, and what held while it ran."""

import html
import json
from dataclasses import dataclass
from functools import cached_property

from deepseek_edu.grading.harness import encode
from deepseek_edu.grading.runner import CRASHED, FAILED, NOT_GRADED, PASSED, TIMED_OUT

MARKS = {PASSED: "✓", FAILED: "✗", TIMED_OUT: "⏱", CRASHED: "☠", NOT_GRADED: "–"}
WORDS = {PASSED: "passed", FAILED: "failed", TIMED_OUT: "timed out", CRASHED: "crashed", NOT_GRADED: "not graded"}
PROTECTIONS = ("time", "memory", "files", "network", "processes", "signals")


@dataclass(frozen=True)
class Report:
    """What `grade` returns.

    Attributes:
        lab: id of the lab; version: its version; title: its title; total: its points.
        submission: name of what was graded.
        mode: "practice" (visible cases only), "graded" (with hidden cases) or "replay" (one hidden case).
        outcomes: one runner.Outcome per case.
        problem: {"type", "message", "line", "place"} when nothing could run, else None.
        notes: what was mended while reading the submission.
        hidden: how many hidden cases the lab has beyond the outcomes here.
        protections: name to text, or None where this machine does not offer the protection.
        place: turns a line of the source into words, as `Submission.place` does.
    """

    lab: str
    version: str
    title: str
    total: float
    submission: str
    mode: str
    outcomes: tuple = ()
    problem: dict | None = None
    notes: tuple = ()
    hidden: int = 0
    protections: dict | None = None
    place: object = None

    @cached_property
    def passed(self):
        """How many cases passed."""
        return sum(outcome.status == PASSED for outcome in self.outcomes)

    @cached_property
    def score(self):
        """Points, rounded to hundredths: the share of the weight of the cases that passed, never rounded up to full."""
        weight = sum(outcome.case.points for outcome in self.outcomes)
        earned = sum(outcome.case.points for outcome in self.outcomes if outcome.status == PASSED)
        if not weight:
            return 0.0
        score = round(self.total * earned / weight, 2)
        return score if self.full or score < self.total else self.total - 0.01

    @cached_property
    def full(self):
        """Whether every case passed, and there was at least one."""
        return bool(self.outcomes) and self.passed == len(self.outcomes)

    @cached_property
    def first_failure(self):
        """The first Outcome that did not pass, or None."""
        return next((outcome for outcome in self.outcomes if outcome.status != PASSED), None)

    @property
    def missing_protections(self):
        """Names of the protections this machine did not offer."""
        return [name for name in PROTECTIONS if not (self.protections or {}).get(name)] if self.protections else []

    def headline(self):
        """One sentence with the result."""
        if self.problem:
            return f"not graded: {self.problem_text()}"
        practice = " (practice)" if self.mode == "practice" else ""
        return f"{self.passed} of {len(self.outcomes)} cases passed, {self.score:g} of {self.total:g} points{practice}"

    def problem_text(self):
        """The problem with its place, such as ``line 3: byte 0xE9 is not UTF-8``."""
        place = self.problem.get("place")
        return f"{place}: {self.problem['message']}" if place else self.problem["message"]

    def to_json(self):
        """JSON-able data; values are tagged as in `harness.encode`."""
        return {
            "lab": self.lab,
            "version": self.version,
            "title": self.title,
            "submission": self.submission,
            "mode": self.mode,
            "score": self.score,
            "points": self.total,
            "passed": self.passed,
            "cases": len(self.outcomes),
            "full": self.full,
            "problem": self.problem,
            "notes": list(self.notes),
            "hidden_not_run": self.hidden,
            "outcomes": [self._outcome(outcome) for outcome in self.outcomes],
            "protections": self.protections or {},
        }

    def _outcome(self, outcome):
        case, data = outcome.case, {}
        data.update(
            id=case.id,
            function=case.function,
            status=outcome.status,
            points=case.points,
            hidden=case.hidden,
            tolerance=case.tolerance,
            seconds=round(outcome.seconds, 3),
            note=case.note,
        )
        if outcome.status != PASSED:
            data.update(
                args=[encode(arg) for arg in case.args],
                replay=case.replay,
                message=self.explain(outcome),
                stdout=outcome.stdout,
            )
            if outcome.comparison:
                compared = outcome.comparison.to_json()
                data.update({key: compared[key] for key in ("path", "got", "expected", "gap")})
            else:
                data["expected"] = encode(case.expected)
            if outcome.error:
                data["error"] = {**outcome.error, "place": self._place(outcome.error["line"])}
        return data

    def _place(self, line):
        return self.place(line) if self.place else f"line {line}" if line else ""

    def explain(self, outcome):
        """One sentence on what happened in a case that did not pass."""
        if outcome.error and outcome.status == FAILED:
            place = self._place(outcome.error["line"])
            where = f" ({place})" if place else ""
            return f"{outcome.error['type']}: {outcome.error['message']}{where}"
        if outcome.comparison:
            compared = outcome.comparison
            gap = f", gap {compared.gap:.6g}" if compared.gap is not None else ""
            at = f" at {compared.path}" if compared.path else ""
            return (
                f"got {show(compared.got)}, expected {show(compared.expected)}{at}{gap}, "
                f"tolerance {outcome.case.tolerance:g}: {compared.reason}"
            )
        return outcome.message

    def text(self, verbose=False):
        """Lines for a terminal: the headline, each case, the first failure in full.

        Args:
            verbose: show every failure in full and the protections.
        """
        lines = [f"{self.title} ({self.lab}, version {self.version}): {self.submission}"]
        lines += [f"  note: {note}" for note in self.notes]
        for outcome in self.outcomes if not self.problem else ():
            lines.append(
                f"  {MARKS[outcome.status]} {outcome.case.id:<20} {outcome.case.function:<14} {WORDS[outcome.status]}"
            )
            if outcome.status != PASSED and (verbose or outcome is self.first_failure):
                lines += [f"      {line}" for line in self._details(outcome)]
        lines.append(self.headline())
        if self.mode == "practice" and self.hidden and not self.problem:
            lines.append(f"{len(self.outcomes)} visible, {self.hidden} hidden cases run at grading")
        if self.missing_protections:
            lines.append(f"not protected on this machine: {', '.join(self.missing_protections)}")
        if verbose and self.protections:
            lines += [f"  {name}: {self.protections.get(name) or 'not available here'}" for name in PROTECTIONS]
        return "\n".join(lines)

    def _details(self, outcome):
        case = outcome.case
        details = [self.explain(outcome), f"call: {call_text(case)}"]
        if case.note:
            details.append(f"about: {case.note}")
        if case.replay:
            details.append(f"to replay this case: deepseek-edu grade {self.lab} FILE --replay {case.replay}")
        if outcome.stdout:
            details.append(f"printed: {outcome.stdout[:200].rstrip()}")
        return details

    __str__ = text

    def __repr__(self):
        return f"Report({self.lab!r}, {self.headline()!r})"

    def _repr_html_(self):
        """For notebooks: a table with the site's colour roles where they exist and plain text where they do not."""

        def cell(text):
            return f"<td style='text-align:left;vertical-align:top'>{html.escape(text)}</td>"

        rows = []
        for outcome in self.outcomes if not self.problem else ():
            why = "" if outcome.status == PASSED else self.explain(outcome)
            call = "" if outcome.status == PASSED else call_text(outcome.case)
            rows.append(
                f"<tr>{cell(MARKS[outcome.status] + ' ' + WORDS[outcome.status])}{cell(outcome.case.id)}"
                f"{cell(why)}{cell(call)}</tr>"
            )
        head = "".join(
            f"<th scope='col' style='text-align:left'>{name}</th>" for name in ("result", "case", "why", "call")
        )
        body = f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody>"
        table = f"<div style='overflow-x:auto'><table>{body}</table></div>"
        practice = self.mode == "practice" and self.hidden and not self.problem
        more = f"<p>{len(self.outcomes)} visible, {self.hidden} hidden cases run at grading.</p>" if practice else ""
        return (
            f"<div class='edu-report'><p><strong>{html.escape(self.title)}</strong>: {html.escape(self.headline())}</p>"
            f"{table if rows else ''}{more}</div>"
        )


def show(value, limit=160):
    """A value for people: Python's own notation, shortened in the middle."""
    text = repr(value)
    return text if len(text) <= limit else f"{text[: limit - 40]} … {text[-35:]}"


def call_text(case, limit=240):
    """The call of a case as Python, such as ``pack([1, 2])``."""
    return show_call(case.function, case.args, limit)


def show_call(function, args, limit=240):
    """A call as Python, each argument shortened to its share of `limit` characters."""
    share = max(60, limit // max(1, len(args)))
    return f"{function}({', '.join(show(arg, share) for arg in args)})"


def to_json_text(report):
    """The report as indented JSON."""
    return json.dumps(report.to_json(), indent=1, ensure_ascii=False)
