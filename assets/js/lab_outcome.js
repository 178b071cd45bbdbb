/**
 * What one case of a lab ended in, in words. Everything except `caseLine` is pure.
 *
 * @typedef {import("./lab.js").Case} Case
 * @typedef {import("./compare.js").Comparison} Comparison
 * @typedef {{status: "returned"|"raised"|"unsupported", value?: any, stdout?: string,
 *   error?: {type: string, message: string, line: number | null}}} Answer
 */

import { make } from "./base.js";

const LONGEST = 300;

/**
 * Tagged plain data as Python would write it.
 * @param {any} value
 * @returns {string}
 */
export function pythonText(value) {
  if (value === null) return "None";
  if (value === true) return "True";
  if (value === false) return "False";
  if (typeof value === "number") return Object.is(value, -0) ? "-0.0" : String(value);
  if (typeof value === "string") return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(pythonText).join(", ")}]`;
  if (Object.hasOwn(value, "$float")) return value.$float;
  if (Object.hasOwn(value, "$int")) return value.$int;
  if (Object.hasOwn(value, "$bytes")) return `bytes.fromhex("${value.$bytes}")`;
  const pairs = Object.hasOwn(value, "$dict") ? value.$dict : Object.entries(value);
  return `{${pairs.map((/** @type {[any, any]} */ [key, item]) => `${pythonText(key)}: ${pythonText(item)}`).join(", ")}}`;
}

/** @param {any} value */
function short(value) {
  const text = pythonText(value);
  return text.length > LONGEST ? `${text.slice(0, LONGEST)} …` : text;
}

/**
 * @param {Case} item
 * @param {Answer} answer
 * @param {(expected: any, got: any, tolerance: number) => Comparison} compare
 * @param {string} [shown] the call as the page shows it
 */
export function outcomeOf(item, answer, compare, shown) {
  const call = shown || `${item.function}(${item.args.map(pythonText).join(", ")})`;
  const printed = answer.stdout ? `printed:\n${answer.stdout}` : "";
  if (answer.status !== "returned") {
    const { type, message, line } = answer.error ?? { type: "Error", message: "", line: null };
    const where = line ? ` on line ${line}` : "";
    const text = answer.status === "raised" ? `raised ${type}${where}: ${message}` : message;
    return { kind: "failed", line: text, detail: printed, mark: line, headline: headline(item, call, [["raised", text]]) };
  }
  const result = compare(item.expected, answer.value, item.tolerance);
  if (result.ok) return { kind: "passed", line: "passed", detail: printed, mark: null, headline: null };
  /** @type {[string, string][]} */
  const rows = [
    ["got", short(result.got)],
    ["expected", short(result.expected)],
    ["gap", result.gap === null ? "none: not two finite numbers" : String(result.gap)],
    ["tolerance", item.tolerance === 0 ? "0 (exact)" : String(item.tolerance)],
  ];
  if (result.path) rows.unshift(["at", result.path]);
  const line = `${result.reason}${result.path ? ` at ${result.path}` : ""}`;
  return { kind: "failed", line, detail: printed, mark: null, headline: headline(item, call, rows) };
}

/** The first failing case in full. @param {Case} item @param {string} call @param {[string, string][]} rows */
function headline(item, call, rows) {
  const list = make("dl", { class: "edu-lab__first" });
  for (const [name, value] of [["first failing case", item.id], ["call", call.length > LONGEST ? `${call.slice(0, LONGEST)} …` : call], ...rows]) {
    list.append(make("dt", {}, name), make("dd", {}, make("code", {}, value)));
  }
  return list;
}

/**
 * @param {HTMLElement | undefined} row
 * @param {string} outcome waiting | running | passed | failed | timeout | crashed | memory | stopped | not-run | …
 * @param {string} text
 * @param {string} [detail] what the case printed
 */
export function caseLine(row, outcome, text, detail = "") {
  if (!row) return;
  row.dataset.outcome = outcome;
  let line = row.querySelector(".edu-case__outcome");
  if (!line) row.append((line = make("p", { class: "edu-case__outcome" })));
  line.textContent = text;
  row.querySelector(".edu-case__printed")?.remove();
  if (detail) row.append(make("pre", { class: "edu-case__printed", tabindex: 0 }, detail));
}
