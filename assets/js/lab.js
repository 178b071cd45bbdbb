/**
 * <edu-lab>: an exercise with visible cases, run one by one in the page's Python. The worker returns plain data; the
 * comparison happens here. It is practice: the command line gives the grade.
 *
 * `data-state`: idle | running | passed | failed | stopped | timeout | crashed | error; `data-reason` says more where
 * one state has several causes (memory, syntax, missing file).
 */

import { EduElement, button, download, fromFile, make } from "./base.js";
import { compare } from "./compare.js";
import { LabWork } from "./lab_work.js";
import { abnormalEnd, caseLine, outcomeOf, plainCase, summaryOfEnds } from "./lab_outcome.js";
import { PythonFailure, explain, progressLine, python } from "./runtime.js";
import { here, store } from "./state.js";

/**
 * @typedef {{id: string, function: string, args: any[], expected: any, tolerance: number, points: number, note: string}} Case
 * @typedef {{id: string, version: string, title: string, points: number, starter: string, functions: string[],
 *   limits: {seconds: number, memory_mb: number}, cases: Case[], hidden: number}} LabData
 */

const LOAD_LIMIT_MS = 5_000;
/** After this many cases that ended Python, the rest is not run: each costs its time limit and a restart. */
const MOST_ENDS = 3;
const RESTARTED = "Python restarted: variables are gone, your code is kept.";
const EARLIER = "This outcome belongs to an earlier state of your code: run the cases again.";
const PRACTICE = "This is a practice check; the command line gives the grade:";

export class EduLab extends EduElement {
  /** @type {LabData} */
  data;
  /** @type {LabWork} */
  work;
  /** @type {HTMLElement} */
  outcome;
  /** @type {HTMLElement[]} */
  rows = [];
  running = false;
  /** Does Python hold the code of this run? A restart loses it. */
  loaded = false;
  restarts = 0;
  /** @type {string | null} the code that the outcome on the page belongs to */
  ran = null;

  mount() {
    this.data = JSON.parse(this.json);
    this.outcome = /** @type {HTMLElement} */ (this.querySelector(".edu-lab__outcome"));
    this.rows = /** @type {HTMLElement[]} */ ([...this.querySelectorAll(".edu-lab__cases > li")]);
    this.work = new LabWork(this);
    this.onLeave(() => this.work.close());
    this.#buttons();
    this.#enter("idle");
    if (fromFile()) return; // parts of the bundle cannot be loaded there
    const near = new IntersectionObserver((entries) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      near.disconnect();
      this.work.box.open().catch(() => {
        if (this.mounted) this.say("The editor could not be loaded; the code can be read and run as it is.");
      });
    }, { rootMargin: "400px" });
    near.observe(this);
    this.onLeave(() => near.disconnect());
  }

  #buttons() {
    const bar = /** @type {HTMLElement} */ (this.querySelector(".edu-lab__bar"));
    bar.hidden = false;
    const size = this.dataset.liveSize;
    const labels = {
      run: python.running || !size ? "Run the visible cases" : `Run the visible cases (loads ${size} once)`,
      stop: "Stop", reset: "Reset", undo: "Undo reset", download: "Download as file",
    };
    for (const [action, label] of Object.entries(labels)) {
      let found = bar.querySelector(`[data-action=${action}]`);
      if (!found) bar.append((found = button(action, label)));
      if (action === "run") found.textContent = label;
      /** @type {HTMLElement} */ (found).hidden = action === "undo";
    }
    this.on(bar, "click", (event) => {
      const action = /** @type {HTMLElement} */ (event.target).closest("[data-action]")?.getAttribute("data-action");
      if (action === "run") this.run();
      if (action === "stop") this.stop();
      if (action === "reset") this.work.reset();
      if (action === "undo") this.work.undo();
      if (action === "download") download(`${this.data.id}.py`, this.code, "text/x-python");
    });
  }

  /** @param {string} action */
  button(action) {
    return /** @type {HTMLButtonElement} */ (this.querySelector(`[data-action=${action}]`));
  }

  /** The learner's text as it is now. */
  get code() {
    return this.work.box.text;
  }

  /** Resolves when Python is up and can take a call. */
  async ready() {
    await python.boot();
  }

  /** @param {string} state @param {string} [reason] */
  #enter(state, reason = "") {
    this.dataset.state = state;
    if (reason) this.dataset.reason = reason;
    else delete this.dataset.reason;
    this.outcome.dataset.outcome = reason === "memory" ? reason : state;
    this.running = state === "running";
    this.button("run").disabled = this.running;
    this.button("stop").disabled = !this.running;
  }

  /** @param {...(string | Node)} lines */
  say(...lines) {
    this.outcome.replaceChildren(...lines.filter(Boolean).map((line) => (typeof line === "string" ? make("p", {}, line) : line)));
  }

  /** Take the last run's outcome and marks away: the text on the page is another one now. */
  forget() {
    if (this.running || this.ran === null) return;
    this.ran = null;
    this.#enter("idle");
    this.say();
    this.rows.forEach(plainCase);
    this.work.box.mark(null);
    this.compareWithRun();
  }

  /** Say so where the outcome on the page belongs to other code than what is written now. */
  compareWithRun() {
    const stale = !this.running && this.ran !== null && this.ran !== this.code;
    if (stale === this.hasAttribute("data-stale")) return;
    this.toggleAttribute("data-stale", stale);
    if (stale) this.outcome.prepend(make("p", { class: "edu-lab__earlier" }, EARLIER));
    else this.outcome.querySelector(".edu-lab__earlier")?.remove();
  }

  /** Run the visible cases in order, each with its own limit. */
  async run() {
    if (this.running) return;
    if (fromFile()) return this.say(explain(new PythonFailure("file")));
    this.#enter("running");
    this.ran = this.code;
    this.removeAttribute("data-stale");
    this.onLeave(() => python.release());
    this.work.box.mark(null);
    for (const row of this.rows) caseLine(row, "waiting", "");
    this.say("Starting Python …");
    const progress = (/** @type {any} */ event) => this.say(progressLine(event.detail, this.dataset.liveSize ?? ""));
    this.restarts = 0;
    const restarted = () => {
      this.loaded = false;
      this.restarts += 1;
    };
    python.addEventListener("progress", progress);
    python.addEventListener("restarted", restarted);
    try {
      await this.#runCases(this.ran);
    } catch (error) {
      if (this.mounted) this.#endedBy(/** @type {PythonFailure} */ (error));
    } finally {
      python.removeEventListener("progress", progress);
      python.removeEventListener("restarted", restarted);
      for (const row of this.rows) {
        if (row.dataset.outcome === "waiting") caseLine(row, "not-run", "not run");
      }
      if (this.mounted) this.compareWithRun();
    }
  }

  /** Run the top level of the code; what keeps it from loading, or null. @param {string} code */
  async #load(code) {
    const packages = /\bnumpy\b/.test(code) ? ["numpy"] : [];
    const options = { packages, timeoutMs: LOAD_LIMIT_MS };
    this.current = undefined;
    this.loaded = true; // a restart from here on says otherwise
    return JSON.parse(await python.call("load", { code, data: this.json }, options));
  }

  /** @param {string} code */
  async #runCases(code) {
    let passed = 0;
    /** @type {Node | null} */
    let first = null;
    /** @type {{kind: string, id: string, sentence: string}[]} cases that ended Python itself */
    const ends = [];
    this.loaded = false;
    for (const [index, item] of this.data.cases.entries()) {
      if (ends.length === MOST_ENDS) break;
      const row = this.rows[index];
      if (!this.loaded) {
        const problem = await this.#load(code);
        if (!this.mounted) return;
        this.button("run").textContent = "Run the visible cases";
        if (problem) return this.#refused(problem);
      }
      caseLine(row, "running", "running …");
      this.say(`Running case ${index + 1} of ${this.data.cases.length} …`);
      this.current = index;
      let answer;
      try {
        const text = await python.call("case", { index }, { timeoutMs: this.data.limits.seconds * 1000 });
        if (!this.mounted) return;
        answer = JSON.parse(text);
        if (answer.error?.type === "MemoryError") throw new PythonFailure("memory");
      } catch (error) {
        const { kind } = /** @type {PythonFailure} */ (error);
        if (!this.mounted || !["timeout", "crashed", "memory"].includes(kind)) throw error;
        const sentence = abnormalEnd(kind, `in case ${item.id}`, this.data.limits.seconds);
        ends.push({ kind, id: item.id, sentence });
        caseLine(row, kind, sentence);
        this.say(sentence, "Restarting Python for the other cases …");
        this.loaded = false; // whatever state the interpreter is in
        continue;
      }
      const call = row?.querySelector(".edu-case__call")?.textContent ?? "";
      const result = outcomeOf(item, answer, compare, call);
      caseLine(row, result.kind, result.line, result.detail);
      if (result.kind === "passed") passed += 1;
      else if (!first) {
        first = result.headline;
        if (result.mark) this.work.box.mark(result.mark);
      }
    }
    this.current = undefined;
    this.#finished(passed, first, ends);
  }

  /** @param {number} passed @param {Node | null} first @param {{kind: string, id: string, sentence: string}[]} ends */
  #finished(passed, first, ends) {
    const { cases, hidden, id, version } = this.data;
    const all = passed === cases.length;
    const kept = store.get("labs", id, version);
    store.put("labs", id, version, {
      code: this.code,
      passed: all || kept?.passed === true,
      runs: (kept?.runs ?? 0) + 1,
      title: this.data.title,
      ...here(this.id),
    });
    const kind = ends[0]?.kind;
    if (kind) this.#enter(kind === "memory" ? "crashed" : kind, kind);
    else this.#enter(all ? "passed" : "failed");
    const command = make("code", {}, `deepseek-edu grade labs/${id} ${id}.py`);
    const practice = make("p", { class: "edu-lab__practice" }, `${PRACTICE} `, command, ` runs ${hidden} hidden cases too.`);
    const unrun = this.rows.filter((row) => row.dataset.outcome === "waiting").length;
    const ended = kind ? [...summaryOfEnds(ends, unrun), this.restarts ? RESTARTED : ""] : [];
    this.say(`${passed} of ${cases.length} visible cases pass.`, ...ended, first ?? "", practice);
  }

  /** The submission could not even be loaded. @param {{type: string, message: string, line: number | null}} problem */
  #refused({ type, message, line }) {
    this.#enter("error", type);
    if (line) this.work.box.mark(line);
    const name = type === "syntax" ? "Syntax error" : /^[A-Z]/.test(type) ? type : "The code cannot be used";
    this.say(`${name}${line ? ` on line ${line}` : ""}: ${message}. No case was run.`);
  }

  /** The whole run ends: the learner stopped it, or Python cannot go on. @param {PythonFailure} failure */
  #endedBy(failure) {
    const row = this.current === undefined ? null : this.rows[this.current];
    const place = this.current === undefined ? "while your code was loading" : `in case ${this.data.cases[this.current].id}`;
    const seconds = this.current === undefined ? LOAD_LIMIT_MS / 1000 : this.data.limits.seconds;
    this.current = undefined;
    const sentence = abnormalEnd(failure.kind, place, seconds);
    if (row) caseLine(row, failure.kind, sentence || explain(failure));
    const state = { stopped: "stopped", timeout: "timeout", crashed: "crashed", memory: "crashed" }[String(failure.kind)] ?? "error";
    this.#enter(state, failure.kind);
    this.say(sentence || explain(failure), sentence ? RESTARTED : "Your code is kept.");
  }

  stop() {
    if (this.running) python.stop();
  }
}
