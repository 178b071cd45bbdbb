/**
 * A text that becomes an editor when the editor's part of the bundle has arrived. Until then, and where it cannot be
 * loaded, the text is there and can be read.
 */

import { loadPart, make } from "./base.js";

let boxes = 0;

export class CodeBox {
  /** @type {import("./editor.js").Editor | null} */
  #editor = null;
  /** @type {Promise<void> | null} */
  #loading = null;
  #text;
  #gone = false;

  /**
   * @param {HTMLElement} holder its present content is replaced by the editor
   * @param {{text: string, label: string, onChange: (text: string) => void, onRun: () => void}} options
   */
  constructor(holder, { text, label, onChange, onRun }) {
    this.holder = holder;
    this.#text = text;
    this.label = label;
    this.onChange = onChange;
    this.onRun = onRun;
  }

  get text() {
    return this.#text;
  }

  /** @param {string} text */
  set text(text) {
    if (text === this.#text) return;
    if (this.#editor) this.#editor.write(text);
    else this.#static(text);
  }

  /** @param {string} text */
  #static(text) {
    this.#text = text;
    const code = this.holder.querySelector("pre code, pre");
    if (code) code.textContent = text;
    this.onChange(text);
  }

  /** Put the editor in place. Rejects when its file cannot be loaded. */
  open() {
    this.#loading ??= this.#open().catch((error) => {
      this.#loading = null;
      throw error;
    });
    return this.#loading;
  }

  async #open() {
    /** @type {typeof import("./editor.js")} */
    const { createEditor } = await loadPart("editor.js");
    if (this.#gone) return;
    const hint = `edu-keys-${++boxes}`;
    const keys = make("p", { class: "edu-editor__keys", id: hint }, "Tab indents. Esc, then Tab leaves the editor. Ctrl+Enter runs.");
    const heard = make("p", { class: "edu-visually-hidden", role: "status" });
    const place = make("div", { class: "edu-editor__code" });
    this.holder.replaceChildren(place, keys, heard);
    this.#editor = createEditor({
      parent: place,
      text: this.#text,
      label: this.label,
      hint,
      onChange: (text) => {
        this.#text = text;
        this.onChange(text);
      },
      onRun: this.onRun,
      onEscape: () => {
        heard.textContent = "";
        heard.textContent = "Tab now leaves the editor.";
      },
    });
  }

  /** @param {number | null} line */
  mark(line) {
    this.#editor?.mark(line);
  }

  focus() {
    this.#editor?.focus();
  }

  destroy() {
    this.#gone = true;
    this.#editor?.destroy();
  }
}
