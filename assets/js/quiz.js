/**
 * <edu-quiz>: a question with options or a number. The reason for what was chosen appears after "Check"; after the
 * right answer the reasons of the other options do too. A wrong number is called too large or too small, and a button shows
 * the answer and why. `data-state`: idle | right | wrong | invalid.
 */

import { EduElement, button } from "./base.js";
import { here, store } from "./state.js";

/**
 * @typedef {{id: string, version: string, kind: "choice" | "number", correct?: number[], answer?: number,
 *   tolerance?: number, unit?: string}} QuizData
 */

/**
 * A number as people type it: a comma for the point, a real minus sign, spaces. NaN for anything else.
 * @param {string} text
 */
export function typedNumber(text) {
  const plain = text.trim().replace(/[\u2212\u2013]/g, "-").replace(/[\s\u00a0\u202f]/g, "");
  const pointed = /^[^.]*,\d+$/.test(plain) && plain.split(",").length === 2 ? plain.replace(",", ".") : plain;
  return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(pointed) ? Number(pointed) : NaN;
}

/**
 * @param {QuizData} data
 * @param {string} answer indices joined by commas, or the typed number
 */
export function isRight(data, answer) {
  if (data.kind === "choice") return answer === (data.correct ?? []).join(",");
  return Math.abs(typedNumber(answer) - Number(data.answer)) <= (data.tolerance ?? 0) + 1e-12 * Math.abs(Number(data.answer));
}

/**
 * What to say of a wrong number.
 * @param {QuizData} data @param {string} answer
 */
export const howFar = (data, answer) => (typedNumber(answer) > Number(data.answer) ? "Too large." : "Too small.");

/**
 * The beginning of a question, as the progress page names it.
 * @param {string} text
 */
export function shortTitle(text, longest = 80) {
  const plain = text.replace(/\s+/g, " ").trim();
  if (plain.length <= longest) return plain;
  return `${plain.slice(0, longest - 1).replace(/[\s,;:.]+\S*$/, "")} …`;
}

/** The question without what is there for the eye or the machine only. @param {Element | null} legend */
function titleOf(legend) {
  const copy = /** @type {Element | undefined} */ (legend?.cloneNode(true));
  copy?.querySelectorAll(".katex-mathml, .edu-claim").forEach((part) => part.remove());
  return shortTitle(copy?.textContent ?? "");
}

const SHOW = "Show the answer and why";
const HIDE = "Hide the answer";

export class EduQuiz extends EduElement {
  /** @type {QuizData} */
  data;
  /** @type {HTMLElement} */
  result;
  name = "";
  /** @type {HTMLButtonElement | null} */
  show = null;

  mount() {
    this.data = JSON.parse(this.json);
    this.dataset.state = "idle";
    const form = /** @type {HTMLFormElement} */ (this.querySelector("form"));
    this.result = /** @type {HTMLElement} */ (this.querySelector(".edu-quiz__result"));
    /** @type {HTMLElement} */ (this.querySelector("button[type=submit]")).hidden = false;
    /** @type {HTMLElement} */ (this.querySelector(".edu-quiz__nojs")).hidden = true;
    this.name = titleOf(this.querySelector("legend"));
    if (this.data.kind === "number") this.#offerAnswer();
    this.on(form, "submit", (event) => {
      event.preventDefault();
      this.#check(true);
    });
    this.on(form, "input", () => this.#clear());
    const kept = store.get("quizzes", this.data.id, this.data.version);
    if (kept?.answer) {
      this.#fill(kept.answer);
      this.#check(false);
    } else if (!kept && Object.keys(store.versions("quizzes", this.data.id)).length > 0) {
      this.result.textContent = "This question has changed since you answered it.";
    }
  }

  /** The button that shows the answer after a wrong number. It keeps the focus: it only opens and closes. */
  #offerAnswer() {
    const why = /** @type {HTMLElement} */ (this.querySelector(".edu-why"));
    why.id = `${this.id}-why`;
    const show = button("answer", SHOW);
    show.setAttribute("aria-controls", why.id);
    show.hidden = true;
    this.result.after(show);
    this.on(show, "click", () => this.#showAnswer(show.getAttribute("aria-expanded") !== "true"));
    this.onLeave(() => show.remove());
    this.show = show;
  }

  /** @param {boolean} shown */
  #showAnswer(shown) {
    this.show?.setAttribute("aria-expanded", String(shown));
    if (this.show) this.show.textContent = shown ? HIDE : SHOW;
    this.#why(this.#options()[0], shown);
    const answer = this.querySelector(".edu-quiz__nojs strong")?.textContent ?? String(this.data.answer);
    this.result.textContent = `${howFar(this.data, this.answer)} ${shown ? `The answer is ${answer}. The reason is shown under your answer.` : "Try again."}`;
  }

  /** @returns {HTMLInputElement[]} */
  get inputs() {
    return [...this.querySelectorAll("input")];
  }

  get answer() {
    if (this.data.kind === "number") return this.inputs[0].value.trim();
    return this.inputs.filter((input) => input.checked).map((input) => input.value).join(",");
  }

  /** @param {string} answer */
  #fill(answer) {
    const chosen = answer.split(",");
    for (const input of this.inputs) {
      if (this.data.kind === "number") input.value = answer;
      else input.checked = chosen.includes(input.value);
    }
  }

  #clear() {
    this.dataset.state = "idle";
    this.result.textContent = "";
    delete this.result.dataset.outcome;
    for (const option of this.#options()) {
      delete option.dataset.outcome;
      this.#why(option, false);
    }
    this.inputs.forEach((input) => input.removeAttribute("aria-invalid"));
    if (this.show) this.show.hidden = true;
  }

  #options() {
    return /** @type {HTMLElement[]} */ ([...this.querySelectorAll(".edu-option")]);
  }

  /** @param {HTMLElement} option @param {boolean} shown */
  #why(option, shown) {
    const why = /** @type {HTMLElement | null} */ (option.querySelector(".edu-why"));
    if (why) why.hidden = !shown;
  }

  /** @param {boolean} keep */
  #check(keep) {
    this.#clear();
    const { answer, data } = this;
    if (answer === "" || (data.kind === "number" && Number.isNaN(typedNumber(answer)))) {
      this.dataset.state = "invalid";
      this.result.textContent = data.kind === "number" ? "Type a number, such as 1.5." : "Choose an answer first.";
      if (data.kind === "number") this.inputs[0].setAttribute("aria-invalid", "true");
      return;
    }
    const right = isRight(data, answer);
    this.dataset.state = right ? "right" : "wrong";
    this.result.dataset.outcome = this.dataset.state;
    this.result.textContent = right ? "Right." : "Not right. Read why, then try again.";
    this.#options().forEach((option, index) => {
      const chosen = data.kind === "number" || this.inputs[index].checked;
      const good = data.kind === "number" ? right : (data.correct ?? []).includes(index);
      if (chosen) option.dataset.outcome = good ? "right" : "wrong";
      this.#why(option, data.kind === "number" ? right : chosen || right);
    });
    if (this.show && !right) {
      this.#showAnswer(false);
      this.show.hidden = false;
    }
    if (keep) this.#keep(right);
  }

  /** The last answer, and whether there ever was a right one: looking at another option takes nothing away. @param {boolean} right */
  #keep(right) {
    const { id, version } = this.data;
    const correct = right || store.get("quizzes", id, version)?.correct === true;
    store.put("quizzes", id, version, { answer: this.answer.slice(0, 200), correct, title: this.name, ...here(this.id) });
  }
}
