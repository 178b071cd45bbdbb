import assert from "node:assert/strict";
import { test } from "node:test";
import "./setup.mjs";

const { howFar, isRight, shortTitle, typedNumber } = await import("../../assets/js/quiz.js");
const { abnormalEnd, pythonText, summaryOfEnds } = await import("../../assets/js/lab_outcome.js");
const { explain, PythonFailure, progressLine } = await import("../../assets/js/runtime.js");

test("numbers are read the way people type them", () => {
  for (const [text, number] of [["1.5", 1.5], ["1,5", 1.5], [" 1 000 ", 1000], ["−0.25", -0.25], ["-.5", -0.5], ["3.", 3], ["1e3", 1000], ["2,0", 2]]) {
    assert.equal(typedNumber(text), number, text);
  }
  for (const text of ["", "abc", "1.5.2", "1,5,2", "1.234,5", "0x10", "--1", "Infinity", "1e"]) {
    assert.ok(Number.isNaN(typedNumber(text)), text);
  }
});

test("a number within the tolerance is right", () => {
  const data = { id: "q", version: "1", kind: "number", answer: 1.625, tolerance: 0 };
  assert.ok(isRight(data, "1.625"));
  assert.ok(isRight(data, "1,625"));
  assert.ok(!isRight(data, "1.63"));
  assert.ok(isRight({ ...data, tolerance: 0.01 }, "1.63"));
  assert.ok(!isRight({ ...data, answer: 0 }, "0.0000001"));
  assert.ok(!isRight(data, ""));
});

test("a choice is right only as a whole", () => {
  const data = { id: "q", version: "1", kind: "choice", correct: [0, 2] };
  assert.ok(isRight(data, "0,2"));
  assert.ok(!isRight(data, "0"));
  assert.ok(!isRight(data, "0,1,2"));
  assert.ok(!isRight(data, ""));
});

test("answers are shown as Python writes them", () => {
  assert.equal(pythonText([1, -0, true, null, "a"]), '[1, -0.0, True, None, "a"]');
  assert.equal(pythonText({ $float: "nan" }), "nan");
  assert.equal(pythonText({ $int: "9007199254740993" }), "9007199254740993");
  assert.equal(pythonText({ $bytes: "0f" }), 'bytes.fromhex("0f")');
  assert.equal(pythonText({ $dict: [[1, "x"]] }), '{1: "x"}');
  assert.equal(pythonText({ a: [] }), '{"a": []}');
});

test("every failure of Python has one plain sentence", () => {
  for (const kind of ["blocked", "missing", "offline", "memory", "file", "stopped", "timeout", "crashed", "broken"]) {
    assert.match(explain(new PythonFailure(kind, "x")), /^[A-Z].*\.$/, kind);
  }
  assert.match(explain(new PythonFailure("missing", "numpy.whl")), /numpy\.whl/);
});

test("loading says what and how much", () => {
  assert.equal(progressLine({ file: "numpy-2.whl", loaded: 9_200_000 }, "9.3 MB"), "Loading numpy: 9.2 MB of 9.3 MB, from this site …");
});

test("a wrong number is told its direction", () => {
  const data = { id: "q", version: "1", kind: "number", answer: -2 };
  assert.equal(howFar(data, "-1,5"), "Too large.");
  assert.equal(howFar(data, "−3"), "Too small.");
});

test("a long question is shortened between words", () => {
  assert.equal(shortTitle("  One\n two "), "One two");
  const long = shortTitle("word ".repeat(40));
  assert.ok(long.length <= 80);
  assert.match(long, /word …$/);
  assert.equal(shortTitle("a".repeat(80)).length, 80);
  assert.equal(shortTitle("one, two, three", 12), "one, two …");
});

test("an ended interpreter is not blamed on one cause", () => {
  const said = abnormalEnd("crashed", "in case a", 2);
  assert.match(said, /ended in case a/);
  assert.match(said, /os\._exit/);
  assert.match(said, /nesting/);
  assert.equal(abnormalEnd("offline", "in case a", 2), "");
});

test("cases that ended Python are named, and what was left out is counted", () => {
  const [a, b, c] = ["a", "b", "c"].map((id) => ({ id, sentence: `It ended in case ${id}.` }));
  assert.deepEqual(summaryOfEnds([a], 0), ["It ended in case a."]);
  assert.deepEqual(summaryOfEnds([a, b, c], 4), [
    "It ended in case a.",
    "Python ended in b and c too.",
    "After 3 cases that ended Python, the other 4 cases were not run.",
  ]);
  assert.match(summaryOfEnds([a, b, c], 1)[2], /the last case was not run/);
});
