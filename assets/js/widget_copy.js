/** What a reader takes from a widget: a link to its values, or values and result as data. */

/** @typedef {import("./widget.js").EduWidget} EduWidget */

/** @param {EduWidget} widget @param {string} text @param {string} done */
async function copy(widget, text, done) {
  try {
    await navigator.clipboard.writeText(text);
    widget.say(done);
  } catch {
    widget.say(text);
  }
}

/** @param {EduWidget} widget */
export function copyLink(widget) {
  const fault = widget.controls.fault(widget.values);
  const done = fault ? `The link is copied, with the entry before this one. ${fault}` : "The link to these values is copied.";
  return copy(widget, widget.link, done);
}

/** Values and result; while the result is covered, values only: copying is no way around the question. @param {EduWidget} widget */
export function copyData(widget) {
  const { id, mechanism } = widget.spec;
  const data = { widget: id, mechanism: mechanism.modules, edited: widget.source !== null, values: widget.values };
  const covered = widget.view.hidden;
  const result = widget.answer && !covered ? { summary: widget.answer.summary, data: widget.answer.data } : null;
  const text = JSON.stringify({ ...data, result }, null, 2);
  if (result) return copy(widget, text, "Values and result are copied as JSON.");
  const how = covered ? "the result is covered until its question has an answer" : "run live to add the result";
  return copy(widget, text, `Values are copied as JSON; ${how}.`);
}
