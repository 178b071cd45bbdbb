/** <edu-walk>: cards shown one at a time, with Back and Next and the arrow keys' native meaning left alone. */

import { EduElement, button, make } from "./base.js";

export class EduWalk extends EduElement {
  mount() {
    const list = /** @type {HTMLElement} */ (this.querySelector("ol"));
    this.cards = /** @type {HTMLElement[]} */ ([...list.children]);
    if (this.cards.length < 2) return;
    this.list = list;
    this.back = button("back", "Back");
    this.next = button("next", "Next");
    this.place = make("span", { class: "edu-walk__place", role: "status" });
    const bar = make("div", { class: "edu-walk__bar edu-bar" }, this.back, this.place, this.next);
    this.append(bar);
    this.on(this.back, "click", () => this.show(this.index - 1));
    this.on(this.next, "click", () => this.show(this.index + 1));
    for (const card of this.cards) card.tabIndex = -1;
    this.show(0, false);
    this.onLeave(() => bar.remove());
  }

  index = 0;

  /** @param {number} index @param {boolean} [focus] */
  show(index, focus = true) {
    const cards = this.cards ?? [];
    this.index = Math.max(0, Math.min(cards.length - 1, index));
    cards.forEach((card, i) => (card.hidden = i !== this.index));
    // Hidden cards do not count, so the number of the shown one is set here.
    if (this.list) this.list.style.counterReset = `walk ${this.index}`;
    if (this.place) this.place.textContent = `${this.index + 1} of ${cards.length}`;
    this.back?.toggleAttribute("disabled", this.index === 0);
    this.next?.toggleAttribute("disabled", this.index === cards.length - 1);
    if (focus) cards[this.index].focus({ preventScroll: true });
  }
}
