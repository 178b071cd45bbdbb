/**
 * A widget's controls: reading, writing and checking values, the key of a precomputed state, and the URL fragment.
 * The functions at the top are pure; `Controls` at the bottom is the only part that touches the page.
 *
 * Sliders move on their grid. Numbers that are typed are used as typed: only the range is checked.
 *
 * @typedef {number | string | boolean | number[]} Value
 * @typedef {{name: string, kind: "slider"|"choice"|"toggle"|"numbers"|"text", label: string, min: number, max: number,
 *   step: number, unit?: string, names?: string[], look?: string, options?: Record<string, string>, length?: number,
 *   fields?: string[], whole?: boolean,
 *   maxLength?: number, lines?: number, pattern?: string, expected?: string, when?: Record<string, Value>,
 *   more?: boolean}} Control
 */

import { make } from "./base.js";

/**
 * Index of a value on a control's grid.
 * @param {Control} control @param {number} value
 */
const stepIndex = (control, value) => Math.round((value - control.min) / control.step);

/** @param {number} number */
const decimalsOf = (number) => (String(number).split(".")[1] ?? "").length;

/**
 * The value on the grid nearest to a number, without binary dust such as 0.30000000000000004.
 * @param {Control} control @param {number} value
 */
export function snap(control, value) {
  const clamped = Math.min(control.max, Math.max(control.min, value));
  const decimals = Math.max(decimalsOf(control.step), decimalsOf(control.min));
  return Number((control.min + stepIndex(control, clamped) * control.step).toFixed(decimals)) + 0;
}

/**
 * A number of a list as keys name it: its step index on the grid, the number itself elsewhere.
 * @param {Control} control @param {number} value
 */
const numberKey = (control, value) => (snap(control, value) === value ? stepIndex(control, value) : `~${value}`);

/**
 * The next number on the grid above or below a number that may lie anywhere; what arrow keys do in a field.
 * @param {Control} control @param {number} value @param {1 | -1} direction
 */
export function stepFrom(control, value, direction) {
  const nearest = snap(control, value);
  const beyond = (nearest - value) * direction > 0;
  return beyond ? nearest : snap(control, nearest + direction * control.step);
}

/**
 * A slider's value in words.
 * @param {Control} control @param {number} value
 */
export function sliderText(control, value) {
  if (control.names?.length) return control.names[stepIndex(control, value)];
  const decimals = (String(control.step).split(".")[1] ?? "").length;
  const number = value.toFixed(decimals).replace("-", "−");
  return control.unit ? `${number} ${control.unit}` : number;
}

/**
 * What the folded line of a widget says of the settings under it; lists and texts are only named.
 * @param {Control[]} controls @param {Record<string, Value>} values
 */
export function settingsText(controls, values) {
  const words = (/** @type {Control} */ control) => {
    const { kind, label } = control;
    const value = values[control.name];
    if (kind === "numbers" || kind === "text") return label;
    if (kind === "slider") return `${label}: ${sliderText(control, Number(value))}`;
    return `${label}: ${kind === "toggle" ? (value ? "on" : "off") : control.options?.[String(value)]}`;
  };
  return controls.filter((control) => control.more && applies(control, values)).map(words).join(" · ");
}

/** A number as pages write it. @param {number} number */
const written = (number) => String(number).replace("-", "−");

/** @param {(string | number)[]} words */
const listed = (words) => (words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`);

/**
 * Fields of a list as a sentence about them begins: by the names they have on the page.
 * @param {Control} control @param {number[]} positions
 */
function fieldNames(control, positions) {
  const { label, fields, length } = control;
  if (length === 1) return `“${label}”`;
  const names = fields ? positions.map((at) => `“${fields[at]}”`) : positions;
  const kind = fields ? "" : positions.length === 1 ? "Number " : "Numbers ";
  return `${kind}${listed(names)} of “${label}”`;
}

/**
 * What is wrong with the entries of a list, in sentences; "" when all can be used.
 * @param {Control} control @param {string[]} entries as typed, one for each field
 */
export function faultOf(control, entries) {
  const positions = entries.flatMap((entry, at) => (parseValue({ ...control, length: 1 }, entry) === null ? [at] : []));
  const empty = positions.filter((at) => entries[at].trim() === "");
  const others = positions.filter((at) => !empty.includes(at));
  const sentence = (/** @type {number[]} */ which, /** @type {string} */ fault) => {
    if (which.length === 0) return [];
    const [are, have] = which.length === 1 ? ["is", "it has to be"] : ["are", "they have to be"];
    const whole = control.whole ? (which.length === 1 ? "a whole number " : "whole numbers ") : "";
    const range = `from ${written(control.min)} to ${written(control.max)}`;
    return [`${fieldNames(control, which)} ${are} ${fault}: ${have} ${whole}${range}.`];
  };
  return [...sentence(empty, "empty"), ...sentence(others, "not used")].join(" ");
}

/**
 * A text as keys name it: what separates controls becomes percent codes.
 * @param {string} text
 */
const textKey = (text) => text.replace(/[%;\n]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`);

/** A text with the line ends that Python sees. @param {Control} control @param {string} typed */
function plainText(control, typed) {
  const ends = typed.replace(/\r\n?/g, "\n");
  return control.lines === 1 ? ends.replaceAll("\n", " ") : ends;
}

/**
 * What is wrong with a typed text, in one sentence that names only that; "" when it can be used.
 * @param {Control} control @param {string} typed
 */
export function textFault(control, typed) {
  const { label, maxLength = Infinity, pattern, expected } = control;
  const text = plainText(control, typed);
  const length = [...text].length;
  const form = `it has to be ${expected || "of another form"}.`;
  if (length > maxLength) return `“${label}” is not used: it has ${length} characters, and at most ${maxLength} are allowed.`;
  if (!pattern || new RegExp(`^(?:${pattern})$`, "su").test(text)) return "";
  return text.trim() === "" ? `“${label}” is empty: ${form}` : `“${label}” is not used: ${form}`;
}

/**
 * A typed text in its one form, or null when it is not allowed.
 * @param {Control} control @param {string} typed
 */
export const textOf = (control, typed) => (textFault(control, typed) ? null : plainText(control, typed));

/**
 * The option whose label a search means: the same words, else the only one, or the first, that contains them; null if none.
 * @param {Control} control @param {string} words
 */
export function optionOf(control, words) {
  const wanted = words.trim().toLowerCase();
  const options = Object.entries(control.options ?? {});
  const exact = options.find(([, label]) => label.toLowerCase() === wanted);
  if (exact) return exact[0];
  if (wanted === "") return null;
  const starts = options.find(([, label]) => label.toLowerCase().startsWith(wanted));
  return (starts ?? options.find(([, label]) => label.toLowerCase().includes(wanted)))?.[0] ?? null;
}

/**
 * The key under which `widgets.states` stores a state. A hidden control counts as its default.
 * @param {Control[]} controls
 * @param {Record<string, Value>} values
 * @param {Record<string, Value>} defaults
 */
export function stateKey(controls, values, defaults) {
  return controls
    .map((control) => {
      const value = (applies(control, values) ? values : defaults)[control.name];
      if (control.kind === "slider") return `${control.name}=${stepIndex(control, Number(value))}`;
      if (control.kind === "toggle") return `${control.name}=${value ? 1 : 0}`;
      if (control.kind === "numbers") {
        const numbers = /** @type {number[]} */ (value);
        return `${control.name}=${numbers.map((number) => numberKey(control, number)).join(",")}`;
      }
      if (control.kind === "text") return `${control.name}=${textKey(String(value))}`;
      return `${control.name}=${value}`;
    })
    .join(";");
}

/**
 * Whether the state of these key fields shows a control.
 * @param {Control[]} controls @param {Control} control @param {string[]} fields
 */
const shownIn = (controls, control, fields) =>
  Object.entries(control.when ?? {}).every(
    ([name, value]) => fields[controls.findIndex((one) => one.name === name)] === `${name}=${valueText(value)}`,
  );

/**
 * Sliders of steps that a wanted state shows and another one shows at another step, or not at all.
 * @param {Control[]} controls @param {string[]} wanted key fields @param {string[]} fields of the other
 */
const otherSteps = (controls, wanted, fields) =>
  controls.filter(
    (control, i) =>
      control.look === "steps" && shownIn(controls, control, wanted) && !(fields[i] === wanted[i] && shownIn(controls, control, fields)),
  );

/**
 * The prepared state nearest to a wanted one: it stands at the same step of a procedure, if one does; then it differs in as
 * few choices and switches as can be, rather in late ones than in early ones; among those, its sliders stand nearest. Null
 * where there is none.
 * @param {Control[]} controls
 * @param {string[]} keys of the prepared states
 * @param {string} key of the wanted one
 */
export function nearestKey(controls, keys, key) {
  const wanted = key.split(";");
  /** @type {string | null} */
  let nearest = null;
  let least = Infinity;
  for (const other of keys) {
    const fields = other.split(";");
    let apart = 100 * (controls.length + 1) ** 2 * otherSteps(controls, wanted, fields).length;
    controls.forEach((control, i) => {
      if (fields[i] === wanted[i]) return;
      const choice = control.kind === "choice" || control.kind === "toggle";
      const [one, two] = [fields[i], wanted[i]].map((field) => Number(field.split("=")[1]));
      const steps = (control.max - control.min) / control.step;
      apart += choice ? 100 * (controls.length - i) : control.kind === "slider" ? Math.abs(one - two) / steps : 1;
    });
    if (apart < least) [nearest, least] = [other, apart];
  }
  return nearest;
}

/**
 * The step that a prepared state shows in place of the wanted one, in words such as `Step “4 Replay”`; "" if it is the same.
 * @param {Control[]} controls @param {string} near key of the prepared state @param {string} key of the wanted one
 */
export function otherStep(controls, near, key) {
  const fields = near.split(";");
  const control = otherSteps(controls, key.split(";"), fields).find((one) => shownIn(controls, one, fields));
  if (!control) return "";
  const index = Number(fields[controls.indexOf(control)].split("=")[1]);
  return `${control.label} “${sliderText(control, snap(control, control.min + index * control.step))}”`;
}

/**
 * Check one value that came from outside (a link); null when it is not allowed.
 * @param {Control} control
 * @param {string} text
 * @returns {Value | null}
 */
export function parseValue(control, text) {
  if (control.kind === "choice") return Object.hasOwn(control.options ?? {}, text) ? text : null;
  if (control.kind === "toggle") return text === "1" ? true : text === "0" ? false : null;
  if (control.kind === "text") return textOf(control, text);
  const parts = control.kind === "numbers" ? text.split(",") : [text];
  if (control.kind === "numbers" && parts.length !== control.length) return null;
  const numbers = parts.map((part) => (part.trim() === "" ? NaN : Number(part)));
  const dust = control.kind === "numbers" ? 0 : 1e-9;
  const inside = numbers.every((n) => Number.isFinite(n) && n >= control.min - dust && n <= control.max + dust);
  if (!inside || (control.whole && !numbers.every(Number.isInteger))) return null;
  return control.kind === "numbers" ? numbers.map((number) => number + 0) : snap(control, numbers[0]);
}

/** @param {Value} value */
const valueText = (value) =>
  Array.isArray(value) ? value.join(",") : typeof value === "boolean" ? (value ? "1" : "0") : String(value);

/**
 * Values of a fragment such as `#widget-fp4?value=3.2&part=block`, or null if it names another element. Unknown names
 * and values out of range are left out.
 * @param {string} id
 * @param {Control[]} controls
 * @param {string} fragment
 * @returns {Record<string, Value> | null}
 */
export function parseFragment(id, controls, fragment) {
  const [name, query = ""] = fragment.replace(/^#/, "").split("?", 2);
  if (name !== id) return null;
  const given = new URLSearchParams(query);
  /** @type {Record<string, Value>} */
  const values = {};
  for (const control of controls) {
    const text = given.get(control.name);
    const value = text === null ? null : parseValue(control, text);
    if (value !== null) values[control.name] = value;
  }
  return values;
}

/**
 * The fragment that leads back to these values; values equal to the defaults are left out, and so is the "?" of none.
 * @param {string} id
 * @param {Control[]} controls
 * @param {Record<string, Value>} values
 * @param {Record<string, Value>} defaults
 */
export function makeFragment(id, controls, values, defaults) {
  const given = new URLSearchParams();
  for (const { name } of controls) {
    if (valueText(values[name]) !== valueText(defaults[name])) given.set(name, valueText(values[name]));
  }
  const query = String(given);
  return query ? `#${id}?${query}` : `#${id}`;
}

/**
 * Whether a control is shown for these values.
 * @param {Control} control
 * @param {Record<string, Value>} values
 */
export const applies = (control, values) =>
  Object.entries(control.when ?? {}).every(([name, wanted]) => values[name] === wanted);

/** The native inputs of one widget. */
export class Controls {
  /** @param {Element} root @param {Control[]} specs */
  constructor(root, specs) {
    this.specs = specs;
    /** @type {HTMLElement | null} the folded settings under the picture */
    this.more = root.querySelector(".edu-more");
    /** @type {Map<string, Element>} */
    this.rows = new Map();
    for (const row of root.querySelectorAll("[data-control]")) {
      this.rows.set(/** @type {HTMLElement} */ (row).dataset.control ?? "", row);
    }
    /** @type {Map<string, string>} sentence about each list that holds something else than numbers in its range */
    this.faults = new Map();
    for (const spec of specs) {
      if (spec.kind === "numbers") this.#typedNumbers(spec);
      if (spec.kind === "text" || spec.look === "search") this.#faultLine(spec);
    }
  }

  /** A line under a field for what is wrong with its entry. @param {Control} spec */
  #faultLine(spec) {
    const row = this.rows.get(spec.name);
    const input = this.#inputs(spec.name)[0];
    if (!row || !input || row.querySelector(".edu-control__fault")) return;
    row.append(make("p", { class: "edu-control__fault", id: `${input.id}-fault`, hidden: true }));
  }

  /** Say what is wrong with a field's entry, or that nothing is (""). @param {Control} spec @param {string} text */
  #say(spec, text) {
    const fault = /** @type {HTMLElement | null} */ (this.rows.get(spec.name)?.querySelector(".edu-control__fault"));
    if (text) this.faults.set(spec.name, text);
    else this.faults.delete(spec.name);
    this.#inputs(spec.name)[0]?.setAttribute("aria-invalid", String(text !== ""));
    if (!fault) return;
    fault.hidden = text === "";
    if (fault.textContent !== text) fault.textContent = text;
  }

  /** What a list of fields needs beside the fields: a line for its fault, and arrow keys that move by its step. @param {Control} spec */
  #typedNumbers(spec) {
    const row = this.rows.get(spec.name);
    const inputs = this.#inputs(spec.name);
    if (!row || inputs.length === 0 || row.querySelector(".edu-control__fault")) return;
    const fault = make("p", { class: "edu-control__fault", id: `${inputs[0].id}-fault`, hidden: true });
    row.append(fault);
    row.addEventListener("keydown", (event) => {
      const { key, target } = /** @type {KeyboardEvent} */ (event);
      if (!(target instanceof HTMLInputElement) || (key !== "ArrowUp" && key !== "ArrowDown")) return;
      event.preventDefault();
      const now = target.value === "" ? 0 : Number(target.value);
      target.value = String(stepFrom(spec, now, key === "ArrowUp" ? 1 : -1));
      target.dispatchEvent(new Event("input", { bubbles: true }));
    });
  }

  /**
   * Mark the wrong entries of a list, and say what they have to be.
   * @param {Control} spec @param {boolean[]} wrong @param {string} text
   */
  #mark(spec, wrong, text) {
    const fault = /** @type {HTMLElement | null} */ (this.rows.get(spec.name)?.querySelector(".edu-control__fault"));
    if (text) this.faults.set(spec.name, text);
    else this.faults.delete(spec.name);
    this.#inputs(spec.name).forEach((input, i) => {
      input.setAttribute("aria-invalid", String(wrong[i] ?? false));
      if (wrong[i] && fault) input.setAttribute("aria-describedby", fault.id);
      else input.removeAttribute("aria-describedby");
    });
    if (!fault) return;
    fault.hidden = text === "";
    if (fault.textContent !== text) fault.textContent = text;
  }

  /** The sentence about an entry that cannot be used, if one is in sight. @param {Record<string, Value>} values */
  fault(values) {
    return this.specs.map((spec) => (applies(spec, values) ? this.faults.get(spec.name) : undefined)).find(Boolean) ?? "";
  }

  /** @param {string} name @returns {(HTMLInputElement | HTMLSelectElement)[]} */
  #inputs(name) {
    const inputs = this.rows.get(name)?.querySelectorAll("input, select, textarea") ?? [];
    return /** @type {any} */ ([...inputs]);
  }

  /** @param {Record<string, Value>} before values of what has no valid entry right now */
  read(before) {
    /** @type {Record<string, Value>} */
    const values = {};
    for (const spec of this.specs) values[spec.name] = this.#readOne(spec, before[spec.name]) ?? before[spec.name];
    return values;
  }

  /** @param {Control} spec @param {Value} before @returns {Value | null} */
  #readOne(spec, before) {
    const inputs = this.#inputs(spec.name);
    if (inputs.length === 0) return null;
    if (spec.kind === "slider") return snap(spec, Number(inputs[0].value));
    if (spec.kind === "toggle") return /** @type {HTMLInputElement} */ (inputs[0]).checked;
    if (spec.kind === "choice") {
      if (inputs[0] instanceof HTMLSelectElement) return inputs[0].value;
      if (spec.look === "search") {
        const option = optionOf(spec, inputs[0].value);
        const words = inputs[0].value.trim();
        this.#say(spec, option === null && words ? `Nothing here is called “${words}”.` : "");
        return option;
      }
      return inputs.find((input) => /** @type {HTMLInputElement} */ (input).checked)?.value ?? null;
    }
    if (spec.kind === "text") {
      this.#say(spec, textFault(spec, inputs[0].value));
      return textOf(spec, inputs[0].value);
    }
    // what is no number at all leaves a field of numbers without a value, like an empty one
    const entries = inputs.map((input) => (input.validity.badInput ? "no number" : input.value));
    const wrong = entries.map((entry) => parseValue({ ...spec, length: 1 }, entry) === null);
    this.#mark(spec, wrong, faultOf(spec, entries));
    const kept = /** @type {number[]} */ (before);
    return inputs.map((input, i) => (wrong[i] ? kept[i] : Number(input.value) + 0));
  }

  /** Put values into their fields; what a field of no value here holds stays, wrong or not. @param {Record<string, Value>} values */
  write(values) {
    for (const spec of this.specs) {
      if (!(spec.name in values)) continue;
      const inputs = this.#inputs(spec.name);
      const value = values[spec.name];
      if (spec.kind === "toggle") {
        /** @type {HTMLInputElement} */ (inputs[0]).checked = value === true;
      } else if (spec.kind === "numbers") {
        const numbers = /** @type {number[]} */ (value);
        inputs.forEach((input, i) => (input.value = String(numbers[i])));
        this.#mark(spec, [], "");
      } else if (spec.look === "search") {
        inputs[0].value = spec.options?.[String(value)] ?? "";
        this.#say(spec, "");
      } else if (spec.kind === "choice" && !(inputs[0] instanceof HTMLSelectElement)) {
        for (const input of inputs) /** @type {HTMLInputElement} */ (input).checked = input.value === value;
      } else if (inputs[0]) {
        inputs[0].value = String(value);
        if (spec.kind === "text") this.#say(spec, "");
      }
    }
  }

  /**
   * Words beside the inputs, and which of them apply.
   * @param {Record<string, Value>} values
   */
  describe(values) {
    for (const spec of this.specs) {
      const row = this.rows.get(spec.name);
      row?.toggleAttribute("hidden", !applies(spec, values));
      if (!row || spec.kind !== "slider") continue;
      const text = sliderText(spec, Number(values[spec.name]));
      row.querySelector("input")?.setAttribute("aria-valuetext", text);
      const output = row.querySelector("output");
      if (output) output.textContent = text;
    }
    if (!this.more) return;
    this.more.hidden = !this.specs.some((spec) => spec.more && applies(spec, values));
    const told = this.more.querySelector(".edu-more__values");
    if (told) told.textContent = settingsText(this.specs, values);
  }
}
