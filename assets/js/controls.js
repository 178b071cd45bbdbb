/** A widget's native inputs: reading, writing and describing them, and saying what is wrong with an entry. */

import { make } from "./base.js";
import { applies, faultOf, optionOf, parseValue, settingsText, sliderText, snap, stepFrom, textFault, textOf } from "./control_values.js";

/** @typedef {import("./control_values.js").Control} Control @typedef {import("./control_values.js").Value} Value */

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
