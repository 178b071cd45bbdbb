/**
 * <edu-widget>: a mechanism with controls. The page holds the start state; precomputed states answer the first moves;
 * after "Run live" every value, and the mechanism's own source, runs in the page's Python.
 *
 * `data-state`: idle | needs-live | booting | live | error.
 */

import { EduElement, button, fileUrl, fromFile, make } from "./base.js";
import { makeFragment, nearestKey, otherStep, parseFragment, stateKey } from "./control_keys.js";
import { Controls } from "./controls.js";
import { copyData, copyLink } from "./widget_copy.js";
import { mountCover } from "./widget_cover.js";
import { toggleEditor } from "./widget_edit.js";
import { mountSteps } from "./widget_steps.js";
import { PythonFailure, explain, progressLine, python } from "./runtime.js";
import { faultWords, liveWords, nearWords } from "./widget_words.js";

/**
 * @typedef {import("./control_values.js").Control} Control
 * @typedef {import("./control_values.js").Value} Value
 * @typedef {{id: string, title: string, controls: Control[], defaults: Record<string, Value>,
 *   values: Record<string, Value>, mechanism: {modules: Record<string, string[]>, names: string[],
 *   source: string}, predict?: {quiz: string, version: string, when: Record<string, Value>}}} Spec
 * @typedef {{fragments: string[], states: Record<string, (number | number[])[]>, summaries: Record<string, string>}} States
 * @typedef {{ok: boolean, summary: string, parts: string[], data: unknown, missing?: string[], stdout?: string,
 *   error?: {type: string, message: string, line: number | null}}} Answer
 */

const LIVE_LIMIT_MS = 5_000;
/** The first answer of a new Python also imports what the widget computes with. */
const FIRST_LIMIT_MS = 20_000;
/** A run that takes longer than this says that it runs; shorter ones would only make the line flicker. */
const SAY_RUNNING_MS = 150;

export class EduWidget extends EduElement {
  /** @type {Spec} */
  spec;
  /** @type {Record<string, Value>} */
  values;
  /** @type {Record<string, Value>} values the page was built with */
  start;
  /** @type {Controls} */
  controls;
  /** @type {HTMLElement} */
  view;
  /** @type {HTMLElement} */
  note;
  /** @type {Promise<States> | null} */
  states = null;
  live = false;
  /** @type {string | null} edited source of the mechanism */
  source = null;
  /** @type {Answer | null} */
  answer = null;
  /** What is covered follows the values. */
  refreshCover = () => {};
  asked = 0;
  evaluating = false;
  /** Whether the Python that runs now has answered this widget. */
  imported = false;
  /** @type {string[]} what each part shows now; unknown until it is first replaced */
  shown = [];
  /** @type {HTMLElement} the row over the picture that says when it shows other values than the reader's */
  over;
  /** Values that the picture shows, as JSON; "" where they are not known here. */
  pictured = "";

  mount() {
    this.spec = JSON.parse(this.json);
    this.start = { ...this.spec.defaults, ...this.spec.values };
    this.values = { ...this.start };
    this.controls = new Controls(this, this.spec.controls);
    this.view = /** @type {HTMLElement} */ (this.querySelector(".edu-view"));
    this.over = this.view.querySelector(":scope > .edu-over") ?? make("p", { class: "edu-over", "aria-hidden": "true" });
    this.view.prepend(this.over);
    this.#pictures(this.values);
    this.#setState("idle");

    this.#buttons();
    const form = /** @type {HTMLFormElement} */ (this.querySelector("form"));
    this.on(form, "submit", (event) => event.preventDefault());
    for (const type of ["input", "change"]) {
      this.on(this, type, ({ target }) => target.closest("[data-control]") && this.#moved());
    }
    this.on(window, "hashchange", () => this.#followLink());
    this.on(python, "restarted", () => this.#pythonRestarted());
    mountSteps(this);
    this.refreshCover = mountCover(this);
    for (const fieldset of this.querySelectorAll("fieldset")) fieldset.disabled = false;
    this.controls.write(this.values);
    this.controls.describe(this.values);
    this.#followLink();
  }

  /** @param {string} state */
  #setState(state) {
    this.dataset.state = state;
  }

  #buttons() {
    const bar = /** @type {HTMLElement} */ (this.querySelector(".edu-widget__bar"));
    bar.hidden = false;
    const labels = { live: "Run live", edit: "Edit the code", reset: "Reset", link: "Copy link", copy: "Copy as data" };
    for (const [action, label] of Object.entries(labels)) {
      let found = /** @type {HTMLButtonElement | null} */ (bar.querySelector(`[data-action=${action}]`));
      if (!found) bar.append((found = button(action, label)));
      found.hidden = false;
    }
    this.note = /** @type {HTMLElement} */ (bar.querySelector(".edu-status") ?? bar.appendChild(make("p", { class: "edu-status", role: "status" })));
    this.#labelLive();
    this.on(python, "state", () => queueMicrotask(() => this.#labelLive())); // a restart is off only in passing
    this.on(bar, "click", (event) => {
      const action = /** @type {HTMLElement} */ (event.target).closest("[data-action]")?.getAttribute("data-action");
      if (action === "live") this.goLive();
      if (action === "reset") this.reset();
      if (action === "link") copyLink(this);
      if (action === "copy") copyData(this);
      if (action === "edit") toggleEditor(this);
    });
  }

  /** The button says how much it loads, and its tip from where, unless Python runs on this page already. */
  #labelLive() {
    if (python.state === "booting") return;
    const size = this.dataset.liveSize;
    const loads = !python.running && size;
    const label = loads ? `Run live (loads ${size} once)` : "Run live";
    const live = this.button("live");
    live.title = loads ? "Python is loaded from this site." : "";
    if (live.textContent !== label) live.textContent = label;
  }

  /** @param {string} action */
  button(action) {
    return /** @type {HTMLButtonElement} */ (this.querySelector(`[data-action=${action}]`));
  }

  /** @param {string} text */
  say(text) {
    if (this.note && this.note.textContent !== text) this.note.textContent = text;
  }

  /** Address of this page with the present values. */
  get link() {
    return new URL(makeFragment(this.id, this.spec.controls, this.values, this.start), location.href).href;
  }

  #followLink() {
    const values = parseFragment(this.id, this.spec.controls, location.hash);
    if (!values) return;
    this.values = { ...this.start, ...values };
    this.controls.write(this.values);
    this.controls.describe(this.values);
    this.scrollIntoView({ block: "start" });
    this.update();
  }

  #moved() {
    this.values = this.controls.read(this.values);
    this.controls.describe(this.values);
    this.update();
  }

  /** Set some controls as if the reader had. @param {Record<string, Value>} values */
  set(values) {
    this.values = { ...this.values, ...values };
    this.controls.write(values);
    this.controls.describe(this.values);
    this.update();
  }

  reset() {
    this.values = { ...this.start };
    this.controls.write(this.values);
    this.controls.describe(this.values);
    if (location.hash.startsWith(`#${this.id}?`)) {
      history.replaceState(history.state, "", `#${this.id}`);
    }
    this.update();
  }

  /** Show the present values, from the precomputed states or from Python. */
  async update() {
    this.refreshCover();
    if (this.live) return this.evaluate();
    const turn = ++this.asked;
    const key = stateKey(this.spec.controls, this.values, this.spec.defaults);
    const states = await this.#loadStates();
    if (turn !== this.asked || this.live) return;
    const near = states && (key in states.states ? key : nearestKey(this.spec.controls, Object.keys(states.states), key));
    if (states && near !== null) {
      const state = states.states[near];
      const parts = state.map((part) => [part].flat().map((index) => states.fragments[index]).join(""));
      this.show(parts, states.summaries[near] ?? "");
      this.answer = null;
      this.#pictures(near === key ? this.values : null);
    }
    if (near === key) return this.#tell("idle", "");
    const { over, said } = nearWords(near !== null, near === null ? "" : otherStep(this.spec.controls, near, key));
    const old = near === null && !("DecompressionStream" in globalThis) ? ", because this browser cannot unpack what was prepared" : "";
    const how = fromFile() ? explain(new PythonFailure("file")) : "Press “Run live” to compute yours.";
    this.#sayOver(fromFile() ? over : `${over}: press “Run live” for yours`);
    this.#tell("needs-live", `${said}${old}. ${how}`);
  }

  /** The picture shows these values now, or ones that are not known here. @param {Record<string, Value> | null} values */
  #pictures(values) {
    this.pictured = values ? JSON.stringify(values) : "";
    this.#sayOver("");
  }

  /** @param {string} text "" while the picture shows the reader's values */
  #sayOver(text) {
    this.over.hidden = text === "";
    if (this.over.textContent !== text) this.over.textContent = text;
  }

  /** Say over the picture what it is, where it does not show the present values. @param {string} text */
  #sayUnlessPictured(text) {
    this.#sayOver(JSON.stringify(this.values) === this.pictured ? "" : text);
  }

  /**
   * Where the widget stands. While a field holds what cannot be used, that comes first: all else goes on with its last entry
   * that could be.
   * @param {"idle" | "needs-live" | "live"} state @param {string} words
   */
  #tell(state, words) {
    const fault = this.controls.fault(this.values);
    this.#setState(fault ? "error" : state);
    if (!fault) return this.say(words);
    this.say(`${fault} The entry before it is used.${state === "needs-live" ? ` ${words}` : ""}`);
  }

  /** @returns {Promise<States | null>} */
  async #loadStates() {
    const path = this.dataset.states;
    if (!path || fromFile()) return null;
    this.states ??= fetch(fileUrl(path)).then((answer) => {
      if (!answer.ok || !answer.body) throw new Error(`${path}: ${answer.status}`);
      return new Response(answer.body.pipeThrough(new DecompressionStream("gzip"))).json();
    });
    return this.states.catch(() => {
      this.states = null;
      return null;
    });
  }

  /**
   * @param {string[]} parts
   * @param {string} summary
   */
  show(parts, summary) {
    const holders = [...this.view.querySelectorAll(":scope > .edu-part")];
    while (holders.length < parts.length) {
      const holder = document.createElement("div");
      holder.className = "edu-part";
      holders.push(this.view.appendChild(holder));
    }
    holders.forEach((holder, i) => {
      if (i >= parts.length) holder.remove();
      else if (this.shown[i] !== parts[i]) holder.innerHTML = parts[i];
      if (i < parts.length) holder.setAttribute("data-part", String(i));
    });
    this.shown = parts;
    const line = this.querySelector(".edu-summary");
    if (line && line.textContent !== summary) line.textContent = summary;
  }

  /** Start Python for this widget and evaluate the present values. */
  async goLive() {
    if (fromFile()) return this.say(explain(new PythonFailure("file")));
    this.live = true;
    this.button("live").disabled = true;
    this.onLeave(() => python.release());
    await this.evaluate();
  }

  /** Evaluate in order; while one evaluation runs, only the latest wish waits. */
  async evaluate() {
    this.asked++;
    if (!python.running) this.#sayUnlessPictured("not yet your values: Python starts");
    if (this.evaluating) return;
    this.evaluating = true;
    try {
      let turn;
      do {
        turn = this.asked;
        await this.#evaluateOnce(turn);
      } while (this.live && this.mounted && turn !== this.asked);
    } finally {
      this.evaluating = false;
    }
  }

  /** @param {number} turn */
  async #evaluateOnce(turn) {
    if (!python.running) {
      this.#setState("booting");
      this.say(`Starting Python …`);
    }
    const progress = (/** @type {any} */ event) => this.say(progressLine(event.detail, this.dataset.liveSize ?? ""));
    python.addEventListener("progress", progress);
    const sayRunning = this.#runningNote();
    try {
      const values = this.values;
      const message = { widget: this.spec.id, values, source: this.source };
      const timeoutMs = this.imported ? LIVE_LIMIT_MS : FIRST_LIMIT_MS;
      const text = await python.call("view", message, { timeoutMs, packages: ["numpy"] });
      this.imported = true;
      if (!this.mounted) return;
      /** @type {Answer} */
      const answer = JSON.parse(text);
      this.#showAnswer(answer, turn, values);
    } catch (error) {
      if (this.mounted) this.#failed(/** @type {PythonFailure} */ (error));
    } finally {
      python.removeEventListener("progress", progress);
      sayRunning.end();
    }
  }

  /** Say that Python runs, if it still does after a moment. */
  #runningNote() {
    const words = this.source === null ? "Running …" : "Running your edited code …";
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let timer;
    const start = () => {
      if (python.running) timer ??= setTimeout(() => this.say(words), SAY_RUNNING_MS);
    };
    const end = () => {
      clearTimeout(timer);
      python.removeEventListener("state", start);
    };
    python.addEventListener("state", start);
    start();
    return { end };
  }

  /** @param {Answer} answer @param {number} turn @param {Record<string, Value>} values that it is for */
  #showAnswer(answer, turn, values) {
    this.dispatchEvent(new CustomEvent("edu:answer", { detail: answer }));
    if (!answer.ok) {
      this.#setState("error");
      this.#sayUnlessPictured("not your values: the last good result");
      this.say(faultWords(answer.error));
      return;
    }
    this.answer = answer;
    this.show(answer.parts, answer.summary);
    this.#pictures(values);
    if (turn === this.asked) this.#tell("live", liveWords(this.source, answer.missing ?? [], this.spec.mechanism.names));
  }

  /** @param {PythonFailure} failure */
  #failed(failure) {
    this.#setState("error");
    this.#sayUnlessPictured("not your values: the last good result");
    const restarts = ["timeout", "stopped", "crashed", "memory"].includes(failure.kind);
    this.say(`${explain(failure)}${restarts ? " Python restarted." : ""} The picture shows the last good result.`);
    if (!restarts && failure.kind !== "python") {
      this.live = false;
      this.button("live").disabled = false;
    }
  }

  #pythonRestarted() {
    this.imported = false;
    if (this.live && !this.evaluating) this.say("Python restarted; the next move runs in a new one.");
  }

  /** Evaluate with an edited mechanism, or with the original one (null). @param {string | null} source */
  runEdited(source) {
    this.source = source;
    return this.live ? this.evaluate() : this.goLive();
  }
}
