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

/** @param {EduWidget} widget */
export function copyData(widget) {
  const { id, mechanism } = widget.spec;
  const data = { widget: id, mechanism: mechanism.modules, edited: widget.source !== null, values: widget.values };
  const result = widget.answer ? { summary: widget.answer.summary, data: widget.answer.data } : null;
  const text = JSON.stringify({ ...data, result }, null, 2);
  return copy(widget, text, result ? "Values and result are copied as JSON." : "Values are copied as JSON; run live to add the result.");
}
