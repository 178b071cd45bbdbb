/**
 * What moves a widget's controls besides its fields: the buttons of a slider of steps (back, next, play), and things in
 * pictures that can be clicked. Both only set a control, so that keyboard, screen reader and links know nothing new.
 */

import { applies, parseValue, snap } from "./control_values.js";

/** @typedef {import("./widget.js").EduWidget} EduWidget @typedef {import("./control_values.js").Control} Control */

/** Time for one step while it plays. */
const STEP_MS = 1_400;

/** @param {EduWidget} widget */
export function mountSteps(widget) {
  for (const control of widget.spec.controls) if (control.look === "steps") mountStepper(widget, control);
  widget.on(widget.view, "click", (event) => {
    const pick = /** @type {Element} */ (event.target).closest("[data-set]");
    const [name, text] = (pick?.getAttribute("data-set") ?? "").split("=", 2);
    const control = widget.spec.controls.find((known) => known.name === name && applies(known, widget.values));
    const value = control && parseValue(control, text);
    if (control && value !== null && value !== undefined) widget.set({ [name]: value });
  });
}

/** @param {EduWidget} widget @param {Control} control */
function mountStepper(widget, control) {
  const row = widget.controls.rows.get(control.name);
  const find = (/** @type {string} */ step) => /** @type {HTMLButtonElement} */ (row?.querySelector(`[data-step=${step}]`));
  const [back, next, play] = [find("back"), find("next"), find("play")];
  if (!back || !next || !play) return;
  /** @type {ReturnType<typeof setInterval> | undefined} */
  let timer;
  const now = () => Number(widget.values[control.name]);
  const go = (/** @type {number} */ value) => widget.set({ [control.name]: snap(control, value) });
  const still = () => {
    clearInterval(timer);
    timer = undefined;
    play.textContent = "Play";
    play.setAttribute("aria-pressed", "false");
  };
  const start = () => {
    if (now() >= control.max) go(control.min);
    play.textContent = "Pause";
    play.setAttribute("aria-pressed", "true");
    timer = setInterval(() => {
      if (now() >= control.max || !widget.isConnected) return still();
      go(now() + control.step);
      if (now() >= control.max) still();
    }, STEP_MS);
  };
  for (const one of [back, next, play]) one.hidden = false;
  widget.on(back, "click", () => (still(), go(now() - control.step)));
  widget.on(next, "click", () => (still(), go(now() + control.step)));
  widget.on(play, "click", () => (timer === undefined ? start() : still()));
  widget.on(/** @type {Element} */ (row), "input", still);
  widget.onLeave(still);
  still();
}
