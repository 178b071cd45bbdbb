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
import { caseLine, outcomeOf } from "./lab_outcome.js";
import { MEMORY_MB, PythonFailure, explain, progressLine, python } from "./runtime.js";
import { here, store } from "./state.js";

/**
 * @typedef {{id: string, function: string, args: any[], expected: any, tolerance: number, points: number, note: string}} Case
 * @typedef {{id: string, version: string, title: string, points: number, starter: string, functions: string[],
 *   limits: {seconds: number, memory_mb: number}, cases: Case[], hidden: number}} LabData
 */

const LOAD_LIMIT_MS = 5_000;
const RESTARTED = "Python restarted: variables are gone, your code is kept.";
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
      run: python.running || !size ? "Run the visible cases" : `Run the visible cases (loads ${size}, once, from this site)`,
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

  /** Run the visible cases in order; an abnormal end leaves the rest unrun. */
  async run() {
    if (this.running) return;
    if (fromFile()) return this.say(explain(new PythonFailure("file")));
    this.#enter("running");
    this.onLeave(() => python.release());
    this.work.box.mark(null);
    for (const row of this.rows) caseLine(row, "waiting", "");
    this.say("Starting Python …");
    const progress = (/** @type {any} */ event) => this.say(progressLine(event.detail, this.dataset.liveSize ?? ""));
    python.addEventListener("progress", progress);
    try {
      await this.#runCases(this.code);
    } catch (error) {
      if (this.mounted) this.#endedBy(/** @type {PythonFailure} */ (error));
    } finally {
      python.removeEventListener("progress", progress);
      for (const row of this.rows) {
        if (row.dataset.outcome === "waiting") caseLine(row, "not-run", "not run");
      }
    }
  }

  /** @param {string} code */
  async #runCases(code) {
    const packages = /\bnumpy\b/.test(code) ? ["numpy"] : [];
    const options = { packages, timeoutMs: LOAD_LIMIT_MS };
    const problem = JSON.parse(await python.call("load", { code, data: this.json }, options));
    if (!this.mounted) return;
    this.button("run").textContent = "Run the visible cases";
    if (problem) return this.#refused(problem);
    let passed = 0;
    /** @type {Node | null} */
    let first = null;
    for (const [index, item] of this.data.cases.entries()) {
      const row = this.rows[index];
      caseLine(row, "running", "running …");
      this.say(`Running case ${index + 1} of ${this.data.cases.length} …`);
      this.current = index;
      const text = await python.call("case", { index }, { timeoutMs: this.data.limits.seconds * 1000 });
      if (!this.mounted) return;
      const answer = JSON.parse(text);
      if (answer.error?.type === "MemoryError") throw new PythonFailure("memory");
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
    this.#finished(passed, first);
  }

  /** @param {number} passed @param {Node | null} first */
  #finished(passed, first) {
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
    this.#enter(all ? "passed" : "failed");
    const command = make("code", {}, `deepseek-edu grade labs/${id} ${id}.py`);
    const practice = make("p", { class: "edu-lab__practice" }, `${PRACTICE} `, command, ` runs ${hidden} hidden cases too.`);
    this.say(`${passed} of ${cases.length} visible cases pass.`, first ?? "", practice);
  }

  /** The submission could not even be loaded. @param {{type: string, message: string, line: number | null}} problem */
  #refused({ type, message, line }) {
    this.#enter("error", type);
    if (line) this.work.box.mark(line);
    const name = type === "syntax" ? "Syntax error" : /^[A-Z]/.test(type) ? type : "The code cannot be used";
    this.say(`${name}${line ? ` on line ${line}` : ""}: ${message}. No case was run.`);
  }

  /** @param {PythonFailure} failure */
  #endedBy(failure) {
    const row = this.current === undefined ? null : this.rows[this.current];
    const place = this.current === undefined ? "while your code was loading" : `in case ${this.data.cases[this.current].id}`;
    const seconds = this.current === undefined ? LOAD_LIMIT_MS / 1000 : this.data.limits.seconds;
    this.current = undefined;
    /** @type {Record<string, string>} */
    const sentences = {
      stopped: `Stopped ${place}.`,
      timeout: `Time limit: more than ${seconds} s ${place}. Look for a loop that does not end.`,
      crashed: `The Python interpreter died ${place}. Very deep nesting does this.`,
      memory: `Out of memory ${place}: this page's Python may use ${MEMORY_MB} MB.`,
    };
    const sentence = sentences[failure.kind] ?? "";
    if (row) caseLine(row, failure.kind, sentence || explain(failure));
    const state = { stopped: "stopped", timeout: "timeout", crashed: "crashed", memory: "crashed" }[String(failure.kind)] ?? "error";
    this.#enter(state, failure.kind);
    this.say(sentence || explain(failure), sentence ? RESTARTED : "Your code is kept.");
  }

  stop() {
    if (this.running) python.stop();
  }
}
