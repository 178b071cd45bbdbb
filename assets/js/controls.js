/**
 * A widget's controls: reading, writing and checking values, the key of a precomputed state, and the URL fragment.
 * The functions at the top are pure; `Controls` at the bottom is the only part that touches the page.
 *
 * @typedef {number | string | boolean | number[]} Value
 * @typedef {{name: string, kind: "slider"|"choice"|"toggle"|"numbers", label: string, min: number, max: number,
 *   step: number, unit?: string, options?: Record<string, string>, length?: number, when?: Record<string, Value>}} Control
 */

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
        return `${control.name}=${numbers.map((number) => stepIndex(control, number)).join(",")}`;
      }
      return `${control.name}=${value}`;
    })
    .join(";");
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
  const parts = control.kind === "numbers" ? text.split(",") : [text];
  if (control.kind === "numbers" && parts.length !== control.length) return null;
  const numbers = parts.map((part) => (part.trim() === "" ? NaN : Number(part)));
  const inside = numbers.every((n) => Number.isFinite(n) && n >= control.min - 1e-9 && n <= control.max + 1e-9);
  if (!inside) return null;
  const snapped = numbers.map((number) => snap(control, number));
  return control.kind === "numbers" ? snapped : snapped[0];
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
  const [name, query] = fragment.replace(/^#/, "").split("?", 2);
  if (name !== id || query === undefined) return null;
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
 * The fragment that leads back to these values; values equal to the defaults are left out.
 * @param {string} id
 * @param {Control[]} controls
 * @param {Record<string, Value>} values
 * @param {Record<string, Value>} defaults
 */
export function makeFragment(id, controls, values, defaults) {
  const query = new URLSearchParams();
  for (const { name } of controls) {
    if (valueText(values[name]) !== valueText(defaults[name])) query.set(name, valueText(values[name]));
  }
  return `#${id}?${query}`;
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
    /** @type {Map<string, Element>} */
    this.rows = new Map();
    for (const row of root.querySelectorAll("[data-control]")) {
      this.rows.set(/** @type {HTMLElement} */ (row).dataset.control ?? "", row);
    }
  }

  /** @param {string} name @returns {(HTMLInputElement | HTMLSelectElement)[]} */
  #inputs(name) {
    const inputs = this.rows.get(name)?.querySelectorAll("input, select") ?? [];
    return /** @type {any} */ ([...inputs]);
  }

  /** @param {Record<string, Value>} before values of what has no valid entry right now */
  read(before) {
    /** @type {Record<string, Value>} */
    const values = {};
    for (const spec of this.specs) values[spec.name] = this.#readOne(spec) ?? before[spec.name];
    return values;
  }

  /** @param {Control} spec @returns {Value | null} */
  #readOne(spec) {
    const inputs = this.#inputs(spec.name);
    if (inputs.length === 0) return null;
    if (spec.kind === "slider") return snap(spec, Number(inputs[0].value));
    if (spec.kind === "toggle") return /** @type {HTMLInputElement} */ (inputs[0]).checked;
    if (spec.kind === "choice") {
      if (inputs[0] instanceof HTMLSelectElement) return inputs[0].value;
      return inputs.find((input) => /** @type {HTMLInputElement} */ (input).checked)?.value ?? null;
    }
    const wrong = inputs.map((input) => parseValue({ ...spec, kind: "slider" }, input.value) === null);
    inputs.forEach((input, i) => input.setAttribute("aria-invalid", String(wrong[i])));
    return wrong.some(Boolean) ? null : inputs.map((input) => snap(spec, Number(input.value)));
  }

  /** @param {Record<string, Value>} values */
  write(values) {
    for (const spec of this.specs) {
      const inputs = this.#inputs(spec.name);
      const value = values[spec.name];
      if (spec.kind === "toggle") {
        /** @type {HTMLInputElement} */ (inputs[0]).checked = value === true;
      } else if (spec.kind === "numbers") {
        const numbers = /** @type {number[]} */ (value);
        inputs.forEach((input, i) => (input.value = String(numbers[i])));
      } else if (spec.kind === "choice" && !(inputs[0] instanceof HTMLSelectElement)) {
        for (const input of inputs) /** @type {HTMLInputElement} */ (input).checked = input.value === value;
      } else if (inputs[0]) {
        inputs[0].value = String(value);
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
      const decimals = (String(spec.step).split(".")[1] ?? "").length;
      const number = Number(values[spec.name]).toFixed(decimals).replace("-", "−");
      const text = spec.unit ? `${number} ${spec.unit}` : number;
      row.querySelector("input")?.setAttribute("aria-valuetext", text);
      const output = row.querySelector("output");
      if (output) output.textContent = text;
    }
  }
}
