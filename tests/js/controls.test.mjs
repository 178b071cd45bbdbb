import assert from "node:assert/strict";
import { test } from "node:test";
import "./setup.mjs";

const { makeFragment, nearestKey, otherStep, parseFragment, stateKey } = await import("../../assets/js/control_keys.js");
const { applies, faultOf, optionOf, parseValue, settingsText, sliderText, snap, stepFrom, textFault, textOf } = await import(
  "../../assets/js/control_values.js"
);

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

test("a link of the start values is the widget's own, and leads to them", () => {
  assert.equal(makeFragment("widget-x", all, start, start), "#widget-x");
  for (const fragment of ["#widget-x", "#widget-x?"]) assert.deepEqual(parseFragment("widget-x", all, fragment), {});
});

test("a link to something else is left alone", () => {
  for (const fragment of ["", "#", "#widget-y", "#widget-xy", "#widget-y?value=1", "#heading"]) {
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

test("a typed number is used as typed, on its grid or not", () => {
  assert.deepEqual(parseValue(list, "0.1234567,1e-3,-1"), [0.1234567, 0.001, -1]);
  assert.equal(parseValue(list, "0,0,1.0000000001"), null);
  const values = { ...start, part: "block", list: [0.1234567, 0.001, -1] };
  const back = parseFragment("widget-x", all, makeFragment("widget-x", all, values, start));
  assert.deepEqual(back.list, values.list);
});

test("a number between two steps has a key of its own", () => {
  const key = (number) => stateKey([part, list], { part: "block", list: [number, 0, 0] }, start);
  assert.equal(key(0.25), "part=block;list=5,4,4");
  assert.equal(key(0.2501), "part=block;list=~0.2501,4,4");
  assert.equal(new Set([0.25, 0.2501, 0.2502, 0.249, 0.5, 0.375].map(key)).size, 6);
});

test("arrow keys go to the next number on the grid", () => {
  const field = { ...list, kind: "numbers", min: -24, max: 24, step: 0.05 };
  assert.equal(stepFrom(field, 7.125, 1), 7.15);
  assert.equal(stepFrom(field, 7.125, -1), 7.1);
  assert.equal(stepFrom(field, 7.1, 1), 7.15);
  assert.equal(stepFrom(field, 24, 1), 24);
  assert.equal(stepFrom(field, 99, -1), 24);
});

test("the sentence about wrong entries calls the fields what they are called on the page, and gives the range", () => {
  assert.equal(faultOf(list, ["1", "0", "-0.5"]), "");
  assert.equal(faultOf(list, ["0", "1", "1.5"]), "Number 2 of “List” is not used: it has to be from −1 to 1.");
  assert.equal(faultOf(list, ["7", "8", "x"]), "Numbers 0, 1 and 2 of “List” are not used: they have to be from −1 to 1.");
  const named = { ...list, fields: ["A, x", "A, y", "B, x"] };
  assert.equal(faultOf(named, ["0", "9", "9"]), "“A, y” and “B, x” of “List” are not used: they have to be from −1 to 1.");
});

test("an empty field is called empty, and a list of one field goes by its label", () => {
  assert.equal(faultOf(list, ["0", " ", "9"]), "Number 1 of “List” is empty: it has to be from −1 to 1. Number 2 of “List” is not used: it has to be from −1 to 1.");
  assert.equal(faultOf({ ...list, length: 1, fields: ["id"] }, [""]), "“List” is empty: it has to be from −1 to 1.");
});

test("where numbers are ids only whole ones are used", () => {
  const id = { name: "id", kind: "numbers", label: "Token", min: 0, max: 95, step: 1, length: 1, whole: true };
  assert.equal(faultOf(id, ["1.5"]), "“Token” is not used: it has to be a whole number from 0 to 95.");
  const ids = { ...id, label: "Ids", length: 2, fields: ["1", "2"] };
  assert.equal(faultOf(ids, ["1.5", "-1"]), "“1” and “2” of “Ids” are not used: they have to be whole numbers from 0 to 95.");
  assert.equal(parseValue(id, "1.5"), null, "a link is held to it too");
  assert.deepEqual(parseValue(id, "2.0"), [2]);
  assert.deepEqual(parseValue({ ...id, whole: false }, "1.5"), [1.5]);
});

const words = { name: "words", kind: "text", label: "Words", maxLength: 8, lines: 1, pattern: "[a-z %;]*", expected: "a to z" };
const code = { name: "code", kind: "text", label: "Code", maxLength: 20, lines: 4 };
const layer = { name: "layer", kind: "choice", label: "Layer", look: "search", options: { 2: "Layer 2 · full", 20: "Layer 20 · full", router: "Router" } };

test("a text is kept as it is typed, or refused whole", () => {
  assert.equal(textOf(words, "new york"), "new york");
  assert.equal(textOf(words, "new york city"), null);
  assert.equal(textOf(words, "New"), null);
  assert.equal(textOf(code, "a\r\nb\rc"), "a\nb\nc");
  assert.equal(textOf({ ...code, lines: 1 }, "a\nb"), "a b");
  assert.equal(textOf({ ...code, maxLength: 1 }, "😀"), "😀", "a character is a code point, as in Python");
});

test("a text is refused for what is wrong with it, and for nothing else", () => {
  const ids = { name: "ids", kind: "text", label: "Three ids", maxLength: 16, lines: 1, pattern: "\\d+( \\d+){2}", expected: "three whole numbers" };
  assert.equal(textFault(ids, "12 37 9"), "");
  assert.equal(textFault(ids, "1,2,3"), "“Three ids” is not used: it has to be three whole numbers.");
  assert.equal(textFault(ids, "1 2 3 4 5 6 7 8 9"), "“Three ids” is not used: it has 17 characters, and at most 16 are allowed.");
  assert.equal(textFault(ids, "  "), "“Three ids” is empty: it has to be three whole numbers.");
  assert.equal(textFault(code, ""), "", "an empty text without a pattern is a text");
});

test("a text is a key of its own, with what separates controls as percent codes", () => {
  assert.equal(stateKey([code, on], { code: "a;b%\n", on: true }, { code: "", on: false }), "code=a%3Bb%25%0A;on=1");
});

test("a text survives a link", () => {
  const values = { code: "f(x) = 1 & 2\n#?+", on: true };
  const fragment = makeFragment("widget-x", [code, on], values, { code: "", on: false });
  assert.deepEqual(parseFragment("widget-x", [code, on], fragment), values);
});

test("a search means the option of that label, or the first that begins with the words or contains them", () => {
  assert.equal(optionOf(layer, "layer 2 · full"), "2");
  assert.equal(optionOf(layer, "layer 20"), "20");
  assert.equal(optionOf(layer, "rout"), "router");
  assert.equal(optionOf(layer, "full"), "2");
  assert.equal(optionOf(layer, "engram"), null);
  assert.equal(optionOf(layer, " "), null);
});

test("a slider of steps is read out by the name of its step", () => {
  const steps = { name: "s", kind: "slider", label: "Step", min: 0, max: 2, step: 1, look: "steps", names: ["a", "b", "c"] };
  assert.equal(sliderText(steps, 1), "b");
  assert.equal(sliderText({ ...steps, names: [], unit: "tokens" }, 2), "2 tokens");
});

test("the nearest prepared state keeps the choices, early ones before late ones, then the sliders", () => {
  const view = { name: "view", kind: "choice", label: "View", options: { one: "One", two: "Two" } };
  const at = { name: "at", kind: "slider", label: "At", min: 0, max: 10, step: 1 };
  const flag = { name: "flag", kind: "toggle", label: "Flag" };
  const controls = [view, at, flag];
  const keys = ["view=one;at=0;flag=0", "view=one;at=8;flag=0", "view=two;at=0;flag=0", "view=two;at=5;flag=1"];
  assert.equal(nearestKey(controls, keys, "view=one;at=7;flag=0"), keys[1]);
  assert.equal(nearestKey(controls, keys, "view=two;at=9;flag=0"), keys[2], "a switch weighs more than a slider");
  assert.equal(nearestKey(controls, keys, "view=one;at=5;flag=1"), keys[1], "an early choice weighs more than a late switch");
  assert.equal(nearestKey(controls, [], "view=one;at=7;flag=0"), null);
});

const walk = { name: "stop", kind: "slider", label: "Stop", min: 1, max: 9, step: 1, look: "steps", names: [..."abcdefghi"].map((n) => `${n}!`) };
const change = { name: "change", kind: "choice", label: "Change", options: { none: "Nothing", bias: "Bias" } };
const amount = { name: "amount", kind: "slider", label: "Amount", min: 0, max: 20, step: 1 };

test("a step that was chosen stays the step that is shown while one at it was prepared", () => {
  const controls = [walk, change, amount];
  const keys = ["stop=1;change=none;amount=4", "stop=1;change=bias;amount=4", "stop=8;change=none;amount=4", "stop=1;change=none;amount=20"];
  const nearest = (key) => nearestKey(controls, keys, key);
  assert.equal(nearest("stop=8;change=bias;amount=4"), keys[2], "not another step with the choice");
  assert.equal(nearest("stop=8;change=none;amount=20"), keys[2], "not another step with the amount");
  assert.equal(nearest("stop=8;change=bias;amount=20"), keys[2]);
  assert.equal(nearest("stop=1;change=bias;amount=19"), keys[1]);
  assert.equal(otherStep(controls, keys[2], "stop=8;change=bias;amount=20"), "");
});

test("where no state at the step was prepared the other step is named", () => {
  const keys = ["stop=0;change=none;amount=4", "stop=3;change=none;amount=4"];
  const near = nearestKey([walk, change, amount], keys, "stop=4;change=bias;amount=4");
  assert.equal(near, keys[1]);
  assert.equal(otherStep([walk, change, amount], near, "stop=4;change=bias;amount=4"), "Stop “d!”");
});

test("a step of another part of a widget is no step that was chosen", () => {
  const view = { name: "view", kind: "choice", label: "View", options: { one: "One", two: "Two" } };
  const controls = [view, { ...walk, when: { view: "one" } }, { ...walk, name: "at", when: { view: "two" } }, amount];
  const keys = ["view=one;stop=0;at=0;amount=4", "view=one;stop=5;at=0;amount=4", "view=two;stop=0;at=0;amount=4"];
  assert.equal(nearestKey(controls, keys, "view=one;stop=5;at=0;amount=9"), keys[1]);
  assert.equal(nearestKey(controls, keys, "view=two;stop=0;at=3;amount=9"), keys[2], "the part before a step");
  assert.equal(nearestKey(controls, [keys[1], keys[2]], "view=one;stop=0;at=0;amount=9"), keys[1], "a hidden step is not shown");
  assert.equal(otherStep(controls, keys[2], "view=one;stop=0;at=0;amount=4"), "", "no step is named that is not shown");
});

test("the folded line tells the settings under it that apply", () => {
  const size = { name: "size", kind: "slider", label: "Size", min: 0, max: 2, step: 0.5, unit: "B", more: true, when: { part: "one" } };
  const wrong = { name: "wrong", kind: "toggle", label: "Wrong rule", more: true };
  const row = { ...list, more: true };
  const kind = { ...part, name: "kind", label: "Kind", more: true };
  const values = { ...start, size: 1.5, wrong: true, kind: "block" };
  const controls = [...all, size, wrong, row, kind];
  assert.equal(settingsText(controls, values), "Size: 1.5 B · Wrong rule: on · Kind: Block");
  assert.equal(settingsText(controls, { ...values, part: "block", wrong: false }), "Wrong rule: off · List · Kind: Block");
});
