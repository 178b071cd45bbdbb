/**
 * The values of a widget's controls: checking what comes in, and telling values and faults in words. Pure.
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

/**
 * Index of a value on a control's grid.
 * @param {Control} control @param {number} value
 */
export const stepIndex = (control, value) => Math.round((value - control.min) / control.step);

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
  return number + (control.unit && control.unit !== "°" ? " " : "") + (control.unit ?? "");
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
export const valueText = (value) =>
  Array.isArray(value) ? value.join(",") : typeof value === "boolean" ? (value ? "1" : "0") : String(value);

/**
 * Whether a control is shown for these values.
 * @param {Control} control
 * @param {Record<string, Value>} values
 */
export const applies = (control, values) =>
  Object.entries(control.when ?? {}).every(([name, wanted]) => values[name] === wanted);
