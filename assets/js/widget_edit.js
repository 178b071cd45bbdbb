/** The mechanism's source under a widget: edit it, run it, see the picture change, restore it. */

import { button, fromFile, make } from "./base.js";
import { CodeBox } from "./code_box.js";
import { PythonFailure, explain, python } from "./runtime.js";

/**
 * Open or close the editor of a widget.
 * @param {import("./widget.js").EduWidget} widget
 */
export async function toggleEditor(widget) {
  const holder = /** @type {HTMLElement} */ (widget.querySelector(".edu-editor"));
  const opener = widget.button("edit");
  if (!holder.hidden) {
    holder.hidden = true;
    opener.setAttribute("aria-expanded", "false");
    return;
  }
  holder.hidden = false;
  opener.setAttribute("aria-expanded", "true");
  if (holder.childElementCount > 0) return;

  const { source, modules, names } = widget.spec.mechanism;
  const code = make("div", { class: "edu-lab__editor" }, make("pre", { tabindex: 0 }, make("code", {}, source)));
  const run = button("run-edit", python.running ? "Run this code" : `Run this code (loads ${widget.dataset.liveSize ?? "Python"})`);
  const stop = button("stop", "Stop");
  const restore = button("restore", "Restore the original");
  const parts = Object.entries(modules).map(([module, names]) => `${names.join(", ")} of ${module}`);
  const what = `The widget runs ${parts.join("; ")}. Change them and run: the picture above follows.`;
  const printed = make("div", { class: "edu-editor__printed", hidden: true });
  holder.append(make("p", { class: "edu-editor__what" }, what), code, make("div", { class: "edu-bar" }, run, stop, restore), printed);

  const start = () => {
    widget.runEdited(box.text === source ? null : box.text);
  };
  const box = new CodeBox(code, { text: source, label: `Source of ${names.join(", ")}`, onChange: () => {}, onRun: start });
  widget.onLeave(() => {
    box.destroy();
    holder.replaceChildren();
    holder.hidden = true;
  });
  widget.on(run, "click", start);
  stop.disabled = true;
  widget.on(stop, "click", () => widget.evaluating && python.stop());
  widget.on(python, "state", ({ detail }) => {
    stop.disabled = detail !== "busy" || !widget.evaluating;
    if (python.running) run.textContent = "Run this code";
  });
  widget.on(restore, "click", () => {
    box.text = source;
    box.mark(null);
    if (widget.source !== null) widget.runEdited(null);
  });
  widget.on(widget, "edu:answer", ({ detail }) => {
    box.mark(detail.ok ? null : detail.error?.line);
    printed.hidden = !detail.stdout;
    if (!detail.stdout) return printed.replaceChildren();
    const text = make("pre", { tabindex: 0, role: "region", "aria-label": "What the code printed" }, detail.stdout);
    printed.replaceChildren(make("p", {}, "The code printed:"), text);
  });
  try {
    if (fromFile()) throw new PythonFailure("file");
    await box.open();
    box.focus();
  } catch (error) {
    const why = error instanceof PythonFailure ? explain(error) : "The editor could not be loaded.";
    widget.say(`${why} The source can be read here.`);
    run.hidden = stop.hidden = restore.hidden = true;
  }
}
