/** <edu-chapter>: at the end of a chapter, what is done in it, and a mark that it was read. */

import { EduElement, button, make } from "./base.js";
import { here, store } from "./state.js";

const VERSION = "1";

/**
 * What of a page's exercises is done.
 * @param {ParentNode} page
 */
function counts(page) {
  /** @param {string} tag @param {"quizzes" | "labs"} section @param {(entry: any) => boolean} good */
  const count = (tag, section, good) => {
    const all = [...page.querySelectorAll(tag)].map((element) => {
      const { data } = /** @type {Element & {data?: {id: string, version: string}}} */ (element);
      return data ? store.get(section, data.id, data.version) : null;
    });
    return { done: all.filter((entry) => entry && good(entry)).length, all: all.length };
  };
  return {
    quizzes: count("edu-quiz", "quizzes", (entry) => entry.correct),
    labs: count("edu-lab", "labs", (entry) => entry.passed),
  };
}

export class EduChapter extends EduElement {
  mount() {
    this.line = make("p", { role: "status" });
    this.mark = button("read", "");
    this.replaceChildren(this.line, this.mark);
    this.on(this.mark, "click", () => {
      store.put("chapters", this.chapter, VERSION, { read: !this.read, title: document.querySelector("h1")?.innerText ?? "", ...here("") });
      this.update();
    });
    this.on(store, "put", () => this.update());
    this.on(store, "change", () => this.update());
    this.update();
    this.onLeave(() => this.replaceChildren());
  }

  get chapter() {
    return this.dataset.chapter ?? "";
  }

  get read() {
    return store.get("chapters", this.chapter, VERSION)?.read === true;
  }

  update() {
    const { quizzes, labs } = counts(document);
    const parts = [];
    if (quizzes.all) parts.push(`${quizzes.done} of ${quizzes.all} questions right`);
    if (labs.all) parts.push(`${labs.done} of ${labs.all} labs passed on this page`);
    this.dataset.state = this.read ? "read" : "open";
    if (this.line) this.line.textContent = [this.read ? "You marked this chapter as read" : "This chapter", parts.join(", ")].filter(Boolean).join(": ") + ".";
    if (this.mark) this.mark.textContent = this.read ? "Mark as not read" : "Mark this chapter as read";
  }
}
