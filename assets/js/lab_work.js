/**
 * A learner's text in one lab: saved as it is typed, reset with undo, and kept apart by the exercise's version.
 */

import { button, make } from "./base.js";
import { CodeBox } from "./code_box.js";
import { here, store } from "./state.js";

const SAVE_AFTER_MS = 300;

export class LabWork {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  /** @type {string | null} */
  #beforeReset = null;
  #savedAt = 0;
  #quiet = false;

  /** @param {import("./lab.js").EduLab} lab */
  constructor(lab) {
    this.lab = lab;
    const { id, version, starter, title } = lab.data;
    const holder = /** @type {HTMLElement} */ (lab.querySelector(".edu-lab__editor"));
    const kept = store.get("labs", id, version);
    this.#savedAt = kept?.at ?? 0;
    this.notice = make("div", { class: "edu-notice", role: "status" });
    holder.before(this.notice);
    this.box = new CodeBox(holder, {
      text: starter,
      label: `Your code for ${title}`,
      onChange: () => this.#changed(),
      onRun: () => lab.run(),
    });
    if (kept) this.#show(kept.code);
    else this.#offerOlder();
    lab.on(store, "change", () => this.#changedElsewhere());
    lab.on(store, "trouble", () => this.#trouble());
    lab.on(window, "pagehide", () => this.save());
    lab.on(document, "visibilitychange", () => document.hidden && this.save());
    this.#trouble();
  }

  #trouble() {
    if (store.trouble) this.tell(store.trouble);
  }

  /** @param {string} text @param {...HTMLElement} actions */
  tell(text, ...actions) {
    this.notice.replaceChildren(text ? make("p", {}, text) : "", ...actions);
  }

  /** Replace the text without counting it as the reader's typing. @param {string} code */
  #show(code) {
    this.#quiet = true;
    this.box.text = code;
    this.#quiet = false;
    this.lab.forget();
  }

  #changed() {
    if (this.#quiet) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.save(), SAVE_AFTER_MS);
    this.unsaved = true;
    this.lab.compareWithRun();
  }

  save() {
    clearTimeout(this.#timer);
    if (!this.unsaved) return;
    this.unsaved = false;
    const { id, version, title } = this.lab.data;
    store.put("labs", id, version, { code: this.box.text, title, ...here(this.lab.id) });
    this.#savedAt = store.get("labs", id, version)?.at ?? 0;
  }

  close() {
    this.save();
    this.notice.remove();
    this.box.destroy();
  }

  reset() {
    if (this.box.text === this.lab.data.starter) return;
    this.#beforeReset = this.box.text;
    this.box.text = this.lab.data.starter;
    this.save();
    this.lab.forget();
    const undo = this.lab.button("undo");
    undo.hidden = false;
    undo.focus();
  }

  undo() {
    if (this.#beforeReset === null) return;
    this.box.text = this.#beforeReset;
    this.#beforeReset = null;
    this.save();
    this.lab.forget();
    this.lab.button("undo").hidden = true;
    this.lab.button("reset").focus();
  }

  /** The exercise has changed since the learner worked on it: keep mine, take new, compare. */
  #offerOlder() {
    const { id, version, starter } = this.lab.data;
    const older = Object.entries(store.versions("labs", id)).filter(([other]) => other !== version);
    const [, mine] = older.sort(([, a], [, b]) => b.at - a.at)[0] ?? [];
    if (!mine) return;
    const keep = button("keep-mine", "Keep my code");
    const take = button("take-new", "Take the new starting code");
    const look = button("compare", "Compare");
    const both = make("div", { class: "edu-compare", hidden: true });
    for (const [title, code] of [["Your code", mine.code], ["New starting code", starter]]) {
      both.append(make("div", {}, make("p", {}, title), make("pre", { tabindex: 0 }, make("code", {}, code))));
    }
    keep.addEventListener("click", () => this.#decide(mine.code));
    take.addEventListener("click", () => this.#decide(starter));
    look.addEventListener("click", () => (both.hidden = !both.hidden));
    this.tell("This exercise has changed since you saved code for it.", keep, take, look, both);
  }

  /** @param {string} code */
  #decide(code) {
    this.#show(code);
    this.unsaved = true;
    this.save();
    this.tell("");
    this.box.focus();
  }

  /** Another tab saved something, or progress was imported. The newest text wins; the other one stays in reach. */
  #changedElsewhere() {
    const { id, version } = this.lab.data;
    const theirs = store.get("labs", id, version);
    if (!theirs || theirs.code === this.box.text) return;
    const mine = this.box.text;
    const swap = (/** @type {string} */ label, /** @type {string} */ code) => {
      const action = button("swap", label);
      action.addEventListener("click", () => this.#decide(code));
      return action;
    };
    if (this.unsaved) {
      this.tell("This exercise was also changed in another tab. What you type here is newer and is kept.", swap("Take the other text", theirs.code));
    } else if (theirs.at > this.#savedAt) {
      this.#savedAt = theirs.at;
      this.#show(theirs.code);
      this.tell("This exercise was changed in another tab; the newer text is shown.", swap("Bring back the text of this tab", mine));
    }
  }
}
