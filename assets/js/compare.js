/**
 * Compare an answer with the expected value: the twin of grading/compare.py, tested on the same vectors. Both values are
 * tagged plain data as the harness writes it ({"$float"}, {"$int"}, {"$bytes"}, {"$dict"}).
 *
 * - Numbers are compared as numbers; a boolean is not a number.
 * - |got - expected| <= tolerance, absolute. Tolerance 0 means exact, and then the sign of zero matters.
 * - NaN equals only NaN, an infinity only itself. Integers beyond 2**53 are compared exactly, tolerance or not.
 * - Lists have the same length, dictionaries the same keys; text, booleans, bytes and None are equal or not.
 *
 * @typedef {{ok: boolean, path: string, got: any, expected: any, gap: number | null, reason: string}} Comparison
 */

/** @param {any} expected @param {any} got @param {number} [tolerance] @returns {Comparison} */
export function compare(expected, got, tolerance = 0) {
  return difference(expected, got, tolerance, "") ?? { ok: true, path: "", got, expected, gap: null, reason: "" };
}

/** @param {any} value @param {string} tag */
const tagged = (value, tag) => typeof value === "object" && value !== null && Object.hasOwn(value, tag);

/** @param {any} value */
function kindOf(value) {
  if (value === null) return "None";
  if (typeof value === "boolean") return "a boolean";
  if (typeof value === "number" || tagged(value, "$float") || tagged(value, "$int")) return "a number";
  if (typeof value === "string") return "text";
  if (tagged(value, "$bytes")) return "bytes";
  return Array.isArray(value) ? "a list" : "a dictionary";
}

/**
 * The first difference, or null.
 * @param {any} expected @param {any} got @param {number} tolerance @param {string} path
 * @returns {Comparison | null}
 */
function difference(expected, got, tolerance, path) {
  /** @param {string} reason @param {number | null} [gap] */
  const differs = (reason, gap = null) => ({ ok: false, path, got, expected, gap, reason });
  const kind = kindOf(expected);
  if (kind !== kindOf(got)) return differs(`got ${kindOf(got)} where ${kind} is expected`);
  /** @type {[any, any, string][]} */
  let pairs = [];
  if (kind === "a number") return numberDifference(expected, got, tolerance, differs);
  if (kind === "a list") {
    if (expected.length !== got.length) {
      return differs(`got ${got.length} items where ${expected.length} are expected`);
    }
    pairs = expected.map((/** @type {any} */ item, /** @type {number} */ i) => [item, got[i], `${path}[${i}]`]);
  } else if (kind === "a dictionary") {
    const wanted = entries(expected);
    const found = entries(got);
    if (wanted.size !== found.size || [...wanted.keys()].some((key) => !found.has(key))) {
      return differs("the keys differ");
    }
    pairs = [...wanted].map(([key, item]) => [item, found.get(key), `${path}[${key}]`]);
  } else if (kind === "bytes") {
    return expected.$bytes === got.$bytes ? null : differs("the values differ");
  } else {
    return expected === got ? null : differs("the values differ");
  }
  for (const [a, b, where] of pairs) {
    const found = difference(a, b, tolerance, where);
    if (found) return found;
  }
  return null;
}

/**
 * A dictionary's items by the JSON text of their keys, which also tells 1 from "1".
 * @param {any} dictionary
 */
function entries(dictionary) {
  const pairs = tagged(dictionary, "$dict") ? dictionary.$dict : Object.entries(dictionary);
  return new Map(pairs.map((/** @type {[any, any]} */ [key, value]) => [keyText(key), value]));
}

/** JSON text in ASCII, as Python writes it. @param {any} key */
const keyText = (key) =>
  JSON.stringify(key).replace(/[^ -~]/g, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`);

/**
 * @param {any} expected @param {any} got @param {number} tolerance
 * @param {(reason: string, gap?: number | null) => Comparison} differs
 */
function numberDifference(expected, got, tolerance, differs) {
  if (tagged(expected, "$int") || tagged(got, "$int")) {
    // A plain number beyond 2**53 can only have been a float: larger integers travel with a tag.
    if (![expected, got].every((value) => tagged(value, "$int") || Number.isSafeInteger(value))) {
      return differs("an integer beyond 2**53 equals only itself");
    }
    const gap = BigInt(got.$int ?? got) - BigInt(expected.$int ?? expected);
    return gap === 0n ? null : differs("the integers differ", Math.min(Math.abs(Number(gap)), 1e300));
  }
  const [a, b] = [toNumber(expected), toNumber(got)];
  if (!Number.isFinite(a) || !Number.isFinite(b)) {
    return Object.is(a, b) ? null : differs("one of the two is not a finite number");
  }
  const gap = Math.abs(b - a);
  if (gap > tolerance) {
    return differs(tolerance === 0 ? "the values differ" : "the gap is larger than the tolerance", gap);
  }
  if (tolerance === 0 && a === 0 && Object.is(a, -0) !== Object.is(b, -0)) return differs("the sign of zero differs", 0);
  return null;
}

const SPECIAL = new Map([["nan", NaN], ["inf", Infinity], ["-inf", -Infinity]]);

/** @param {any} value @returns {number} */
const toNumber = (value) => (tagged(value, "$float") ? (SPECIAL.get(value.$float) ?? NaN) : value);
