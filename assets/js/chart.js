/**
 * <edu-chart>: a static picture, and on demand the same data as an interactive figure. The picture stays until the
 * figure is drawn, so the place is never blank. `data-state`: static | loading | interactive | error.
 */

import { EduElement, fromFile, loadPart, make } from "./base.js";

export class EduChart extends EduElement {
  mount() {
    this.picture = /** @type {HTMLElement} */ (this.querySelector(".edu-chart__static"));
    this.open = /** @type {HTMLButtonElement} */ (this.querySelector(".edu-chart__open"));
    this.dataset.state = "static";
    this.picture.hidden = false;
    this.open.textContent = "Show interactive figure";
    this.open.hidden = fromFile();
    this.on(this.open, "click", () => (this.dataset.state === "interactive" ? this.close() : this.show()));
    this.onLeave(() => this.close());
  }

  async show() {
    const { open, picture } = this;
    if (!open || !picture || this.dataset.state === "loading") return;
    this.dataset.state = "loading";
    open.textContent = "Loading the figure …";
    const figure = JSON.parse(this.json);
    const name = [figure.layout.title?.text, figure.layout.meta?.description].filter(Boolean).join(". ");
    const place = make("div", { class: "edu-chart__plot", role: "img", "aria-label": name });
    try {
      const { draw, purge } = /** @type {typeof import("./plotly.js")} */ (await loadPart("plotly.js"));
      if (!this.mounted) return;
      picture.after(place);
      await draw(place, figure);
      if (!this.mounted) return;
      picture.hidden = true;
      let width = place.clientWidth;
      const again = () => place.clientWidth > 0 && draw(place, figure);
      const size = new ResizeObserver(() => {
        if (place.clientWidth !== width && place.clientWidth > 0) {
          width = place.clientWidth;
          again();
        }
      });
      size.observe(place);
      const theme = new MutationObserver(again);
      theme.observe(document.body, { attributes: true, attributeFilter: ["data-md-color-scheme"] });
      this.shutDown = () => {
        size.disconnect();
        theme.disconnect();
        purge(place);
        place.remove();
      };
      this.dataset.state = "interactive";
      open.textContent = "Show static picture";
    } catch {
      place.remove();
      this.dataset.state = "error";
      open.textContent = "The interactive figure could not be loaded. Try again";
    }
  }

  close() {
    this.shutDown?.();
    this.shutDown = undefined;
    if (this.picture) this.picture.hidden = false;
    if (this.open) this.open.textContent = "Show interactive figure";
    this.dataset.state = "static";
  }
}
