/**
 * What one case of a lab ended in, in words. Everything except `caseLine` is pure.
 *
 * @typedef {import("./lab.js").Case} Case
 * @typedef {import("./compare.js").Comparison} Comparison
 * @typedef {{status: "returned"|"raised"|"unsupported", value?: any, stdout?: string,
 *   error?: {type: string, message: string, line: number | null}}} Answer
 */

import { make } from "./base.js";
import { MEMORY_MB } from "./runtime.js";

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
    if (type === "missing") {
      const text = `There is no function ${item.function} in your code.`;
      return { kind: "failed", line: text, detail: printed, mark: null, headline: headline(item, call, [["missing", text]]) };
    }
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
 * One sentence for a run or a case that ended without an answer; an empty string for a failure of another kind.
 * @param {string} kind @param {string} place @param {number} seconds the limit that held
 */
export function abnormalEnd(kind, place, seconds) {
  switch (kind) {
    case "stopped":
      return `Stopped ${place}.`;
    case "timeout":
      return `Time limit: more than ${seconds} s ${place}. Look for a loop that does not end.`;
    case "crashed":
      return `The Python interpreter ended ${place}. A call of os._exit and very deep nesting do this.`;
    case "memory":
      return `Out of memory ${place}: this page's Python may use ${MEMORY_MB} MB.`;
    default:
      return "";
  }
}

/**
 * The cases of one run that ended Python: the first in full, the others by name, and what was left out for them.
 * @param {{id: string, sentence: string}[]} ends
 * @param {number} unrun how many cases were not run after the last of them
 */
export function summaryOfEnds([first, ...others], unrun) {
  const lines = [first.sentence];
  if (others.length) lines.push(`Python ended in ${others.map(({ id }) => id).join(" and ")} too.`);
  const rest = unrun === 1 ? "the last case was" : `the other ${unrun} cases were`;
  if (unrun) lines.push(`After ${others.length + 1} cases that ended Python, ${rest} not run.`);
  return lines;
}

/** A case that has not been run. @param {HTMLElement} row */
export function plainCase(row) {
  delete row.dataset.outcome;
  row.querySelectorAll(".edu-case__outcome, .edu-case__printed").forEach((line) => line.remove());
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
