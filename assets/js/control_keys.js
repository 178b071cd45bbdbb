/** What names a setting of a widget: the key of a precomputed state, the nearest one that there is, the URL fragment. Pure. */

import { applies, parseValue, sliderText, snap, stepIndex, valueText } from "./control_values.js";

/** @typedef {import("./control_values.js").Control} Control @typedef {import("./control_values.js").Value} Value */

/**
 * A number of a list as keys name it: its step index on the grid, the number itself elsewhere.
 * @param {Control} control @param {number} value
 */
const numberKey = (control, value) => (snap(control, value) === value ? stepIndex(control, value) : `~${value}`);

/**
 * A text as keys name it: what separates controls becomes percent codes.
 * @param {string} text
 */
const textKey = (text) => text.replace(/[%;\n]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`);

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
