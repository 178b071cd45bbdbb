import assert from "node:assert/strict";
import { test } from "node:test";

const { faultWords, liveWords, nearWords } = await import("../../assets/js/widget_words.js");
const NAMES = ["nearest_code", "scale", "pack"];

test("an error with words", () => {
  const said = faultWords({ type: "NameError", message: "name 'x' is not defined", line: 2 });
  assert.equal(said, "NameError, line 2 of the code: name 'x' is not defined. The picture shows the last good result.");
});

test("an error without words", () => {
  const said = faultWords({ type: "RuntimeError", message: "", line: 42 });
  assert.equal(said, "RuntimeError, line 42 of the code. The picture shows the last good result.");
});

test("a sentence that has ended is not ended again", () => {
  assert.match(faultWords({ type: "ValueError", message: "Why?", line: null }), /^ValueError: Why\? The picture/);
});

test("no answer at all is a sentence too", () => {
  assert.equal(faultWords(undefined), "Python gave no answer. The picture shows the last good result.");
});

test("the original and the whole edited mechanism", () => {
  assert.equal(liveWords(null, [], NAMES), "Live: computed by Python on this page.");
  assert.equal(liveWords("x", [], NAMES), "Live: computed by your edited code.");
});

test("functions that are missing in the text are named", () => {
  assert.equal(liveWords("x", ["scale"], NAMES), "Live: computed by your edited code. scale is missing in it: the original is used.");
  assert.match(liveWords("x", ["scale", "pack"], NAMES), /scale and pack are missing in it: the originals are used\.$/);
});

test("a text that defines nothing computed nothing", () => {
  for (const text of ["", " \n"]) assert.match(liveWords(text, NAMES, NAMES), /not by your code.*empty.*original/);
  assert.match(liveWords("x = 1", NAMES, NAMES), /not by your code.*none of the functions nearest_code, scale and pack.*original/);
});

test("a picture of other values than the reader's is never passed off as theirs", () => {
  assert.equal(nearWords(true, "").over, "near your values");
  assert.equal(nearWords(false, "").over, "the values before yours");
  const { over, said } = nearWords(true, "Step “4 Replay”");
  assert.equal(over, "not your step: this is Step “4 Replay”");
  assert.equal(said, "The picture does not show your step: it is Step “4 Replay”, the nearest that was prepared");
});
