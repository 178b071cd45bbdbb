/**
 * "Predict first": what a widget computed stays covered until a question of the page has an answer, right or wrong, or the
 * reader asks to see it. Either is kept with the reader's answers, so "Reset" of the widget covers nothing again; a reset of
 * all progress does, at the next visit. Without this script nothing is covered.
 */

import { here, store } from "./state.js";

/** @typedef {import("./widget.js").EduWidget} EduWidget */

/**
 * @param {EduWidget} widget
 * @returns {() => void} brings the cover up to date with the widget's values
 */
export function mountCover(widget) {
  const { predict } = widget.spec;
  const cover = /** @type {HTMLElement | null} */ (widget.querySelector(".edu-cover"));
  if (!predict || !cover) return () => {};
  const { quiz, version, when } = predict;
  const covered = [widget.view, /** @type {HTMLElement} */ (widget.querySelector(".edu-summary"))];
  const known = () => store.get("quizzes", quiz, version) !== null;
  let open = known();

  const update = () => {
    const applies = !open && Object.entries(when).every(([name, wanted]) => widget.values[name] === wanted);
    cover.hidden = !applies;
    for (const part of covered) part.hidden = applies;
  };
  const uncover = () => {
    const shut = !cover.hidden;
    open = true;
    update();
    return shut;
  };
  const look = () => {
    if (!open && known() && uncover()) widget.say("Your answer is kept; the result is shown now.");
  };
  widget.on(store, "put", look);
  widget.on(store, "change", look);
  widget.on(cover, "click", ({ target }) => {
    if (target.dataset.action !== "uncover") return;
    const { name = "" } = /** @type {{name?: string}} */ (document.getElementById(`quiz-${quiz}`) ?? {});
    uncover();
    widget.view.tabIndex = -1; // the button with the focus is gone: reading goes on where it stood
    widget.view.focus({ preventScroll: true });
    store.put("quizzes", quiz, version, { answer: "", correct: false, seen: true, title: name, ...here(`quiz-${quiz}`) });
  });
  widget.onLeave(() => {
    cover.hidden = true;
    for (const part of covered) part.hidden = false;
  });
  update();
  return update;
}
