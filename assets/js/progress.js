/**
 * <edu-progress>: everything this browser keeps for the course; export, import with a preview, reset with undo.
 */

import { EduElement, button, download, fileUrl, make } from "./base.js";
import { SECTIONS, emptyState, merge, preview, store } from "./state.js";
import { LARGEST_FILE, readExport, writeExport } from "./state_check.js";

/** @typedef {import("./state.js").State} State */

const NAMES = { chapters: "Chapters", quizzes: "Questions", labs: "Labs" };

const SHOWN = /** @type {import("./state.js").Section[]} */ (["chapters", "quizzes", "labs"]);

/** @type {Record<string, (entry: any) => string>} */
const WORDS = {
  chapters: (entry) => (entry.read ? "read" : "not read"),
  quizzes: (entry) => (entry.correct ? "right" : entry.answer === "" ? "result shown, not answered" : "not right yet"),
  labs: (entry) => (entry.passed ? "visible cases passed" : "code saved"),
};

/** A day in the language of these pages, whatever the browser's. @param {number} at */
const day = (at) => new Date(at).toLocaleDateString("en-GB", { day: "numeric", month: "long", year: "numeric" });

export class EduProgress extends EduElement {
  /** @type {State | null} what an undo brings back */
  earlier = null;

  mount() {
    this.notice = make("p", { class: "edu-notice", role: "status" });
    this.list = make("div", { class: "edu-progress__list" });
    this.plan = make("div", { class: "edu-progress__plan", hidden: true });
    this.file = make("input", { type: "file", accept: "application/json,.json", hidden: true, "aria-label": "Progress file" });
    const actions = { export: "Export as a file", import: "Import a file", reset: "Reset everything", undo: "Undo" };
    const buttons = Object.entries(actions).map(([action, label]) => button(action, label));
    this.bar = make("div", { class: "edu-progress__bar" }, ...buttons, this.file);
    this.replaceChildren(this.notice, this.list, this.bar, this.plan);
    this.undoButton = buttons[3];
    this.undoButton.hidden = true;
    this.on(this.bar, "click", (event) => {
      const action = /** @type {HTMLElement} */ (event.target).dataset.action;
      if (action === "export") this.export();
      if (action === "import") this.file?.click();
      if (action === "reset") this.#replace(emptyState(), "Everything is reset.");
      if (action === "undo") this.undo();
    });
    this.on(this.file, "change", () => this.#read());
    for (const type of ["change", "put"]) this.on(store, type, () => this.update());
    this.on(store, "trouble", () => this.say(store.trouble));
    this.say(store.trouble);
    this.update();
    this.onLeave(() => this.replaceChildren());
  }

  /** @param {string} text */
  say(text) {
    if (this.notice) this.notice.textContent = text;
  }

  update() {
    const state = store.all();
    const blocks = [];
    for (const section of SHOWN) {
      const items = Object.entries(state[section]).map(([id, versions]) => {
        const entry = Object.values(versions).sort((a, b) => b.at - a.at)[0];
        const title = entry.title || id;
        const name = entry.page ? make("a", { href: new URL(`../${entry.page}`, fileUrl("./")).href }, title) : title;
        return make("li", {}, name, `: ${WORDS[section](entry)}, ${day(entry.at)}`);
      });
      if (items.length) blocks.push(make("h2", {}, NAMES[section]), make("ul", { class: "edu-progress__items" }, ...items));
    }
    this.list?.replaceChildren(...(blocks.length ? blocks : [make("p", {}, "Nothing is kept yet.")]));
  }

  export() {
    const now = new Date().toISOString();
    download(`deepseek-edu-progress-${now.slice(0, 10)}.json`, writeExport(store.all(), now), "application/json");
    this.say("The file is in your downloads.");
  }

  async #read() {
    const file = this.file?.files?.[0];
    if (!file || !this.file) return;
    const text = file.size > LARGEST_FILE ? " ".repeat(LARGEST_FILE + 1) : await file.text();
    this.file.value = "";
    const result = readExport(text);
    this.#close();
    this.say(store.trouble); // an earlier file's refusal is not about this one
    if ("trouble" in result) return this.say(`${file.name} was not imported: ${result.trouble}. Nothing has changed.`);
    this.#show(file.name, result.state);
  }

  /** What an import would change, before it does. @param {string} name @param {State} theirs */
  #show(name, theirs) {
    const lines = SECTIONS.map((section) => {
      const { fresh, newer, older, same } = preview(store.all(), theirs, section);
      return make("li", {}, `${NAMES[section]}: ${fresh} new, ${newer} newer than yours (yours are replaced), ${older} older (yours stay), ${same} the same`);
    });
    const go = button("confirm", "Import");
    const no = button("cancel", "Cancel");
    go.addEventListener("click", () => {
      this.#close();
      this.#replace(merge(store.all(), theirs), `${name} is imported.`);
    });
    no.addEventListener("click", () => this.#close());
    this.plan?.replaceChildren(make("p", {}, `${name} would change:`), make("ul", {}, ...lines), make("div", { class: "edu-progress__bar" }, go, no));
    if (this.plan) this.plan.hidden = false;
    go.focus();
  }

  /** Take the preview away; the keyboard goes on at the button that asked for it. */
  #close() {
    if (!this.plan || this.plan.hidden) return;
    this.plan.replaceChildren();
    this.plan.hidden = true;
    /** @type {HTMLElement | null | undefined} */ (this.bar?.querySelector("[data-action=import]"))?.focus();
  }

  /** @param {State} state @param {string} done */
  #replace(state, done) {
    this.earlier = store.all();
    store.replace(state);
    if (this.undoButton) this.undoButton.hidden = false;
    this.say(`${done} Undo is possible until you leave this page.`);
  }

  undo() {
    if (!this.earlier) return;
    store.replace(this.earlier);
    this.earlier = null;
    if (this.undoButton) this.undoButton.hidden = true;
    this.say("Everything is as it was.");
  }
}
