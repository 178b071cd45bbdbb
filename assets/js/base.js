/**
 * Small helpers shared by the elements: where our files are, and reading and writing the page.
 *
 * Every address is computed from this script's own address, so the site works under any sub-path.
 */

/**
 * The `edu/` folder of the site. The bundle is a classic script, because browsers refuse module scripts on pages opened
 * as files; so the address comes from the script's element.
 */
const own = /** @type {HTMLScriptElement | null} */ (
  document.currentScript ?? document.querySelector('script[src*="edu/app-"]')
);
export const base = new URL("./", own?.src ?? location.href);

/** @param {string} path relative to `edu/` */
export const fileUrl = (path) => new URL(path, base).href;

/**
 * Load a part of the bundle that most pages never need.
 * @template T
 * @param {"editor.js" | "plotly.js"} name
 * @returns {Promise<T>}
 */
export const loadPart = (name) => import(fileUrl(EDU_FILES[name]));

/**
 * Make an element. Text children are text, never markup.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Record<string, string | boolean | number>} [attributes]
 * @param {...(Node | string)} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== false) element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children);
  return element;
}

/**
 * A button of ours.
 * @param {string} action
 * @param {string} label
 */
export const button = (action, label) =>
  make("button", { type: "button", class: "edu-button", "data-action": action }, label);

/**
 * Offer text as a file. The link never enters the page, and nothing leaves the reader's machine.
 * @param {string} name
 * @param {string} text
 * @param {string} [type]
 */
export function download(name, text, type = "text/plain") {
  const url = URL.createObjectURL(new Blob([text], { type }));
  make("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** @param {number} bytes */
export const megabytes = (bytes) => `${(bytes / 1e6).toFixed(1)} MB`;

/** True when the page was opened as a file, where browsers refuse workers and modules. */
export const fromFile = () => location.protocol === "file:";

const OURS = "edu-widget, edu-lab, edu-quiz, edu-chart";

/**
 * Base of our elements: `mount` runs each time the element enters the page, and everything registered through
 * `this.signal` or `this.onLeave` is released when it leaves (instant navigation swaps the page's content).
 */
export class EduElement extends HTMLElement {
  /** @type {AbortController | null} */
  #life = null;
  /** Text of the element's own JSON, as the site was built with it. */
  json = "";

  connectedCallback() {
    if (this.#life) return;
    // The parser may still be adding our children; the document's scripts run after it, upgrades are synchronous.
    if (document.readyState === "loading") {
      document.addEventListener("DOMContentLoaded", () => this.connectedCallback(), { once: true });
      return;
    }
    if (!this.isConnected) return;
    this.#life = new AbortController();
    this.#takeJson();
    try {
      this.mount();
    } catch (error) {
      console.warn(`<${this.localName}> stays static`, error);
    }
  }

  /**
   * Take the data out of the page before the site shell looks: after swapping a page's content it runs every script
   * in it again as JavaScript, and drops the type that says it is data.
   */
  #takeJson() {
    for (const script of this.querySelectorAll('script[type="application/json"]')) {
      if (script.parentElement?.closest(OURS) !== this) continue;
      this.json = script.textContent ?? "";
      script.remove();
    }
  }

  disconnectedCallback() {
    this.#life?.abort();
    this.#life = null;
  }

  /** Aborted when the element leaves the page. */
  get signal() {
    if (!this.#life) throw new Error("not in a page");
    return this.#life.signal;
  }

  get mounted() {
    return this.#life !== null;
  }

  /** @param {() => void} action */
  onLeave(action) {
    this.signal.addEventListener("abort", action, { once: true });
  }

  /**
   * @param {EventTarget} target
   * @param {string} type
   * @param {(event: any) => void} listener
   */
  on(target, type, listener) {
    target.addEventListener(type, listener, { signal: this.signal });
  }

  mount() {}
}
