/**
 * What the reader keeps: code, answers, progress. One key of localStorage, versioned, merged on every write so that
 * two tabs do not erase each other's work. Where storage is refused or full, the same data lives for the session only
 * and `storageTrouble` says so.
 *
 * @typedef {{at: number, title?: string, page?: string}} Entry `page` is relative to the site
 * @typedef {Entry & {code: string, passed?: boolean, runs?: number}} LabEntry
 * @typedef {Entry & {answer: string, correct: boolean, seen?: boolean}} QuizEntry `answer` is "" while only `seen`: what the
 *   question asks for was shown without an answer
 * @typedef {Entry & {read: boolean}} ChapterEntry
 * @typedef {{version: 1, labs: Record<string, Record<string, LabEntry>>,
 *   quizzes: Record<string, Record<string, QuizEntry>>, chapters: Record<string, Record<string, ChapterEntry>>}} State
 * @typedef {"labs" | "quizzes" | "chapters"} Section
 */

import { base } from "./base.js";
import { isState } from "./state_check.js";

export const KEY = "deepseek-edu";
export const SECTIONS = /** @type {Section[]} */ (["labs", "quizzes", "chapters"]);

/** @returns {State} */
export const emptyState = () => ({ version: 1, labs: {}, quizzes: {}, chapters: {} });

/** Events: `trouble` (a sentence), `put` (this page saved something), `change` (another tab or an import did). */
export class Store extends EventTarget {
  /** @type {State} */
  #memory = emptyState();
  /** @type {Storage | null} */
  #storage = null;
  trouble = "";

  /** @param {() => Storage} open may throw: browsers refuse storage in some private modes */
  constructor(open) {
    super();
    try {
      const storage = open();
      storage.setItem(`${KEY}-probe`, "1");
      storage.removeItem(`${KEY}-probe`);
      this.#storage = storage;
    } catch (error) {
      // A full quota still lets us read what is there.
      try {
        this.#storage = open();
        this.#storage.getItem(KEY);
      } catch {
        this.#storage = null;
      }
      this.#report(error);
    }
    this.#memory = this.#read();
  }

  /** @param {unknown} error */
  #report(error) {
    const full = error instanceof DOMException && /quota/i.test(error.name);
    this.trouble = full
      ? "This browser's storage is full: what you do now is kept only until this tab closes. Export it on the progress page."
      : "This browser keeps nothing for this site (private mode or storage disabled): what you do now is kept only until this tab closes.";
    this.dispatchEvent(new CustomEvent("trouble", { detail: this.trouble }));
  }

  /** @returns {State} */
  #read() {
    let text = null;
    try {
      text = this.#storage?.getItem(KEY) ?? null;
    } catch {
      return this.#memory;
    }
    if (text === null) return this.trouble ? this.#memory : emptyState();
    try {
      const value = JSON.parse(text);
      if (isState(value)) return this.trouble ? merge(value, this.#memory) : value;
    } catch {
      // falls through: unreadable text is treated as below
    }
    this.#setAside(text);
    return emptyState();
  }

  /** Saved text that this version cannot read is moved aside, never overwritten. @param {string} text */
  #setAside(text) {
    try {
      this.#storage?.setItem(`${KEY}-unreadable`, text);
    } catch {
      // nothing more can be done where even this is refused
    }
  }

  /** Everything kept, as a copy. @returns {State} */
  all() {
    this.#memory = this.#read();
    return structuredClone(this.#memory);
  }

  /**
   * Entries of one exercise by version.
   * @param {Section} section @param {string} id @returns {Record<string, any>}
   */
  versions(section, id) {
    return this.all()[section][id] ?? {};
  }

  /** @param {Section} section @param {string} id @param {string} version @returns {any} */
  get(section, id, version) {
    return this.versions(section, id)[version] ?? null;
  }

  /** @param {Section} section @param {string} id @param {string} version @param {object} entry `at` is set here */
  put(section, id, version, entry) {
    const state = this.all();
    const versions = (state[section][id] ??= {});
    versions[version] = /** @type {any} */ ({ ...versions[version], ...entry, at: Date.now() });
    this.#write(state);
    this.dispatchEvent(new CustomEvent("put"));
  }

  /** Replace everything (import, reset, undo). @param {State} state */
  replace(state) {
    this.#write(state);
    this.dispatchEvent(new CustomEvent("change"));
  }

  /** @param {State} state */
  #write(state) {
    this.#memory = state;
    try {
      if (!this.#storage) throw new Error("no storage");
      this.#storage.setItem(KEY, JSON.stringify(state));
      this.trouble = "";
    } catch (error) {
      if (!this.trouble) this.#report(error);
    }
  }
}

/**
 * The newer of two entries, with what was reached in either: right once stays right.
 * @template {any} T @param {T} ours @param {T} theirs @returns {T}
 */
function newerWithBest(ours, theirs) {
  const [newer, older] = /** @type {[any, any]} */ (/** @type {any} */ (ours).at < /** @type {any} */ (theirs).at ? [theirs, ours] : [ours, theirs]);
  const best = { ...newer };
  for (const name of ["correct", "passed"]) if (older[name] === true) best[name] = true;
  if (best.answer === "" && older.answer) best.answer = older.answer; // looking takes no answer away
  if (best.title === undefined && older.title !== undefined) best.title = older.title;
  return best;
}

/**
 * All entries of two states; of two entries for the same exercise and version the newer one, and what was reached in
 * either.
 * @param {State} ours @param {State} theirs @returns {State}
 */
export function merge(ours, theirs) {
  const merged = structuredClone(ours);
  for (const section of SECTIONS) {
    for (const [id, versions] of Object.entries(theirs[section])) {
      const kept = (merged[section][id] ??= {});
      for (const [version, entry] of Object.entries(versions)) {
        kept[version] = /** @type {any} */ (kept[version] ? newerWithBest(kept[version], entry) : entry);
      }
    }
  }
  return merged;
}

/**
 * What an import would do to one section.
 * @param {State} ours @param {State} theirs @param {Section} section
 */
export function preview(ours, theirs, section) {
  const counted = { fresh: 0, newer: 0, older: 0, same: 0 };
  for (const [id, versions] of Object.entries(theirs[section])) {
    for (const [version, entry] of Object.entries(versions)) {
      const mine = ours[section][id]?.[version];
      if (!mine) counted.fresh += 1;
      else if (mine.at === entry.at) counted.same += 1;
      else if (mine.at < entry.at) counted.newer += 1;
      else counted.older += 1;
    }
  }
  return counted;
}

/**
 * Where the reader is, for the links of the progress page.
 * @param {string} id of an element of this page
 */
export function here(id) {
  const site = new URL("../", base).pathname;
  const page = location.pathname.startsWith(site) ? location.pathname.slice(site.length) || "index.html" : "";
  return page ? { page: id ? `${page}#${id}` : page } : {};
}

/** The page's store. */
export const store = new Store(() => {
  // the shell's first script puts an empty stand-in where the browser refuses its storage
  if ("refused" in localStorage) throw new DOMException("storage is refused", "SecurityError");
  return localStorage;
});
globalThis.addEventListener?.("storage", ({ key }) => {
  if (key === KEY || key === null) store.dispatchEvent(new CustomEvent("change"));
});
