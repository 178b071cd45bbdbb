import assert from "node:assert/strict";
import { test } from "node:test";
import "./setup.mjs";

const { applies, makeFragment, parseFragment, parseValue, snap, stateKey } = await import("../../assets/js/controls.js");

const value = { name: "value", kind: "slider", label: "Value", min: -8, max: 8, step: 0.05, when: { part: "one" } };
const part = { name: "part", kind: "choice", label: "Part", options: { one: "One", block: "Block" } };
const list = { name: "list", kind: "numbers", label: "List", min: -1, max: 1, step: 0.25, length: 3, when: { part: "block" } };
const on = { name: "on", kind: "toggle", label: "On" };
const all = [value, part, list, on];
const start = { value: 3.2, part: "one", list: [0, 0.25, -0.5], on: false };

test("a slider value lies on the grid, without binary dust", () => {
  assert.equal(snap(value, 0.30000000000000004), 0.3);
  assert.equal(snap(value, 0.32), 0.3);
  assert.equal(snap(value, 99), 8);
  assert.equal(snap(value, -99), -8);
  assert.ok(Object.is(snap(value, -0.01), 0), "zero has no sign here");
});

test("the key of a state is what the site's builder writes", () => {
  assert.equal(stateKey(all, start, start), "value=224;part=one;list=4,5,2;on=0");
});

test("a hidden control counts as its default", () => {
  assert.equal(stateKey(all, { ...start, list: [1, 1, 1] }, start), stateKey(all, start, start));
  assert.notEqual(stateKey(all, { ...start, part: "block", list: [1, 1, 1] }, start), stateKey(all, { ...start, part: "block" }, start));
});

test("a control applies when every condition holds", () => {
  assert.equal(applies(value, start), true);
  assert.equal(applies(list, start), false);
  assert.equal(applies(on, start), true);
});

test("a link leads back to the same values", () => {
  const values = { value: -7.4, part: "block", list: [1, -1, 0.5], on: true };
  const fragment = makeFragment("widget-x", all, values, start);
  assert.deepEqual({ ...start, ...parseFragment("widget-x", all, fragment) }, values);
});

test("a link of the start values names none", () => assert.equal(makeFragment("widget-x", all, start, start), "#widget-x?"));

test("a link to something else is left alone", () => {
  for (const fragment of ["", "#widget-x", "#widget-y?value=1", "#heading"]) {
    assert.equal(parseFragment("widget-x", all, fragment), null);
  }
});

test("nonsense in a link is ignored, value by value", () => {
  const nonsense = "#widget-x?value=1e99&part=__proto__&list=1,2&on=maybe&extra=1&value2=%3Cscript%3E";
  assert.deepEqual(parseFragment("widget-x", all, nonsense), {});
  assert.deepEqual(parseFragment("widget-x", all, "#widget-x?value=2.5&part=constructor"), { value: 2.5 });
  assert.deepEqual(parseFragment("widget-x", all, "#widget-x?value=%E0%A4%A"), {});
});

test("only plain numbers inside the range are values", () => {
  for (const text of ["", " ", "NaN", "Infinity", "0x10x", "8.1", "abc"]) assert.equal(parseValue(value, text), null, text);
  assert.equal(parseValue(value, "8"), 8);
});
