/**
 * Is this the reader's state, and nothing else? Used for what storage holds and for a file to import. Pure.
 *
 * @typedef {import("./state.js").State} State
 */

const NAME = /^[\w.:-]{1,100}$/;
/** A page of this site: never another origin, never outside the site's folder. */
const PAGE = /^\w[\w./-]*\.html(#[\w.:-]+)?$/;
const LONGEST_TEXT = 200_000;
export const LARGEST_FILE = 5_000_000;

/** @param {any} value */
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

/** Fields every entry has or may have. @type {Record<string, (value: any) => boolean>} */
const COMMON = {
  at: Number.isFinite,
  title: (value) => value === undefined || (typeof value === "string" && value.length <= 300),
  page: (value) => value === undefined || (typeof value === "string" && PAGE.test(value) && !value.includes("..")),
};

/** @type {Record<string, Record<string, (value: any) => boolean>>} */
const FIELDS = {
  labs: {
    ...COMMON,
    code: (value) => typeof value === "string" && value.length <= LONGEST_TEXT,
    passed: (value) => value === undefined || typeof value === "boolean",
    runs: (value) => value === undefined || (Number.isInteger(value) && value >= 0),
  },
  quizzes: {
    ...COMMON,
    answer: (value) => typeof value === "string" && value.length <= 200,
    correct: (value) => typeof value === "boolean",
    seen: (value) => value === undefined || typeof value === "boolean",
  },
  chapters: { ...COMMON, read: (value) => typeof value === "boolean" },
};

/**
 * What is wrong with a value that should be a state; an empty string if nothing is.
 * @param {any} value
 */
export function troubleWith(value) {
  if (!isObject(value)) return "it holds no progress";
  if (value.version !== 1) return `its version is ${JSON.stringify(value.version)}, this page reads version 1`;
  const unknown = Object.keys(value).find((key) => key !== "version" && !Object.hasOwn(FIELDS, key));
  if (unknown !== undefined) return `it has an unknown part ${JSON.stringify(unknown)}`;
  for (const [section, fields] of Object.entries(FIELDS)) {
    if (!isObject(value[section])) return `the part ${section} is missing`;
    for (const [id, versions] of Object.entries(value[section])) {
      if (!NAME.test(id) || id === "__proto__") return `${section} has a name that cannot be: ${JSON.stringify(id)}`;
      if (!isObject(versions)) return `${section}.${id} is not a list of versions`;
      for (const [version, entry] of Object.entries(versions)) {
        const where = `${section}.${id}.${version}`;
        if (!NAME.test(version) || version === "__proto__" || !isObject(entry)) return `${where} is not an entry`;
        for (const [name, check] of Object.entries(fields)) {
          if (!check(entry[name])) return `${where}.${name} is not what it should be`;
        }
        const extra = Object.keys(entry).find((key) => !Object.hasOwn(fields, key));
        if (extra !== undefined) return `${where} has an unknown field ${JSON.stringify(extra)}`;
      }
    }
  }
  return "";
}

/** @param {any} value @returns {value is State} */
export const isState = (value) => troubleWith(value) === "";

/**
 * Read an exported file.
 * @param {string} text
 * @returns {{state: State} | {trouble: string}}
 */
export function readExport(text) {
  if (text.length > LARGEST_FILE) return { trouble: "it is larger than 5 MB" };
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    return { trouble: "it is not JSON" };
  }
  if (!isObject(value) || value.format !== "deepseek-edu-progress") return { trouble: "it is no progress file of this course" };
  const trouble = troubleWith(value.state);
  return trouble ? { trouble } : { state: value.state };
}

/** @param {State} state @param {string} when ISO time */
export const writeExport = (state, when) =>
  JSON.stringify({ format: "deepseek-edu-progress", exported: when, state }, null, 2);
