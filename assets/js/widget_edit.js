/** @param {import("./widget.js").EduWidget} widget */
export async function openEditor(widget) {
  widget.say("");
}
