import assert from "node:assert/strict";
import { test } from "node:test";
import { fakeStorage } from "./setup.mjs";

const { KEY, Store, emptyState, merge, preview } = await import("../../assets/js/state.js");
const { readExport, troubleWith, writeExport } = await import("../../assets/js/state_check.js");

const lab = (code, at) => ({ ...emptyState(), labs: { one: { v1: { code, at } } } });

test("what is put is there for the next page", () => {
  const storage = fakeStorage();
  new Store(() => storage).put("labs", "one", "v1", { code: "x = 1" });
  assert.equal(new Store(() => storage).get("labs", "one", "v1").code, "x = 1");
});

test("another version of the exercise does not overwrite the first", () => {
  const store = new Store(() => fakeStorage());
  store.put("labs", "one", "v1", { code: "old" });
  store.put("labs", "one", "v2", { code: "new" });
  assert.deepEqual(Object.values(store.versions("labs", "one")).map((entry) => entry.code), ["old", "new"]);
});

test("two tabs that save different exercises both keep theirs", () => {
  const storage = fakeStorage();
  const [first, second] = [new Store(() => storage), new Store(() => storage)];
  first.put("labs", "one", "v1", { code: "first" });
  second.put("labs", "two", "v1", { code: "second" });
  first.put("quizzes", "q", "v1", { answer: "0", correct: true });
  const kept = JSON.parse(storage.kept.get(KEY));
  assert.deepEqual(Object.keys(kept.labs), ["one", "two"]);
  assert.equal(kept.quizzes.q.v1.correct, true);
});

test("without storage everything works for the session and the trouble is named", () => {
  const store = new Store(() => {
    throw new DOMException("no", "SecurityError");
  });
  assert.match(store.trouble, /until this tab closes/);
  store.put("labs", "one", "v1", { code: "x" });
  assert.equal(store.get("labs", "one", "v1").code, "x");
});

test("a full storage is named, what is new stays in memory and what is old stays readable", () => {
  const storage = fakeStorage();
  new Store(() => storage).put("labs", "one", "v1", { code: "old" });
  storage.full = true;
  const store = new Store(() => storage);
  const heard = [];
  store.addEventListener("trouble", (event) => heard.push(event.detail));
  store.put("labs", "two", "v1", { code: "new" });
  assert.match(store.trouble, /full/);
  assert.equal(store.get("labs", "one", "v1").code, "old");
  assert.equal(store.get("labs", "two", "v1").code, "new");
});

test("a quota that fills up later is told once", () => {
  const storage = fakeStorage();
  const store = new Store(() => storage);
  const heard = [];
  store.addEventListener("trouble", (event) => heard.push(event.detail));
  storage.full = true;
  store.put("labs", "one", "v1", { code: "a" });
  store.put("labs", "one", "v1", { code: "b" });
  assert.equal(heard.length, 1);
  assert.equal(store.get("labs", "one", "v1").code, "b");
});

test("text that cannot be read is set aside, not overwritten", () => {
  const storage = fakeStorage();
  storage.kept.set(KEY, '{"version": 7, "labs": "from the future"}');
  const store = new Store(() => storage);
  store.put("labs", "one", "v1", { code: "x" });
  assert.equal(storage.kept.get(`${KEY}-unreadable`), '{"version": 7, "labs": "from the future"}');
});

test("of two entries the newer one wins, and nothing else is lost", () => {
  const ours = { ...lab("ours", 5), quizzes: { q: { v: { answer: "1", correct: true, at: 1 } } } };
  assert.equal(merge(ours, lab("theirs", 9)).labs.one.v1.code, "theirs");
  assert.equal(merge(ours, lab("theirs", 2)).labs.one.v1.code, "ours");
  assert.equal(merge(ours, lab("theirs", 9)).quizzes.q.v.answer, "1");
  assert.equal(ours.labs.one.v1.code, "ours", "the input is left alone");
});

test("a preview counts what an import would do", () => {
  assert.deepEqual(preview(lab("a", 5), lab("b", 9), "labs"), { fresh: 0, newer: 1, older: 0, same: 0 });
  assert.deepEqual(preview(lab("a", 5), lab("b", 2), "labs"), { fresh: 0, newer: 0, older: 1, same: 0 });
  assert.deepEqual(preview(emptyState(), lab("b", 2), "labs"), { fresh: 1, newer: 0, older: 0, same: 0 });
});

test("an exported file comes back as it was", () => {
  const state = { ...lab("x = 1\n", 5), chapters: { c: { 1: { read: true, at: 3, page: "c.html#end", title: "C" } } } };
  assert.deepEqual(readExport(writeExport(state, "2026-01-01T00:00:00Z")), { state });
});

const bad = {
  "not JSON": "hello",
  "a list": "[]",
  "another program's file": '{"format": "other", "state": {}}',
  "a newer version": { version: 2 },
  "a missing part": { labs: undefined },
  "an unknown part": { extra: {} },
  "code that is no text": { labs: { one: { v1: { code: 1, at: 1 } } } },
  "a time that is no number": { labs: { one: { v1: { code: "", at: "now" } } } },
  "an unknown field": { labs: { one: { v1: { code: "", at: 1, run: "me" } } } },
  "a name with markup": { labs: { "<img>": { v1: { code: "", at: 1 } } } },
  "a page of another site": { chapters: { c: { 1: { read: true, at: 1, page: "https://evil.test/a.html" } } } },
  "a page outside the site": { chapters: { c: { 1: { read: true, at: 1, page: "a/../../b.html" } } } },
  "a script for a page": { chapters: { c: { 1: { read: true, at: 1, page: "javascript:alert(1)//.html" } } } },
};
for (const [name, change] of Object.entries(bad)) {
  test(`an import with ${name} is refused with a reason`, () => {
    const text =
      typeof change === "string" ? change : JSON.stringify({ format: "deepseek-edu-progress", state: { ...emptyState(), ...change } });
    const result = readExport(text);
    assert.ok(result.trouble, text);
  });
}

test("a prototype cannot be set through an import", () => {
  const text = `{"format": "deepseek-edu-progress", "state": {"version": 1, "quizzes": {}, "chapters": {}, "labs": {"__proto__": {"v": {"code": "", "at": 1}}}}}`;
  assert.ok(readExport(text).trouble);
  assert.equal(troubleWith(emptyState()), "");
});

test("a file of more than five megabytes is not even parsed", () => {
  assert.match(readExport(" ".repeat(5_000_001)).trouble, /5 MB/);
});

test("what was right once stays right, whichever entry is newer", () => {
  const quiz = (at, correct, title) => ({ ...emptyState(), quizzes: { q: { v: { answer: String(at), correct, at, ...(title && { title }) } } } });
  const merged = merge(quiz(1, true, "Why?"), quiz(2, false)).quizzes.q.v;
  const looked = { ...emptyState(), quizzes: { q: { v: { answer: "", correct: false, seen: true, at: 9 } } } };
  assert.equal(troubleWith(looked), "", "a result that was shown without an answer");
  assert.deepEqual(merge(quiz(1, true), looked).quizzes.q.v, { answer: "1", correct: true, seen: true, at: 9 });
  assert.deepEqual(merge(looked, quiz(1, true)).quizzes.q.v, { answer: "1", correct: true, seen: true, at: 9 });
  assert.deepEqual(merged, { answer: "2", correct: true, at: 2, title: "Why?" });
  assert.deepEqual(merge(quiz(2, false), quiz(1, true)).quizzes.q.v, { answer: "2", correct: true, at: 2 });
  assert.equal(merge(quiz(1, false), quiz(2, false)).quizzes.q.v.correct, false);
});
