/**
 * The code editor (CodeMirror 6 with Python), loaded when a reader comes near one.
 *
 * Tab indents. Keyboard users leave with Esc, then Tab; the editor says so to screen readers and in its hint.
 */

import { closeBrackets, closeBracketsKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { python } from "@codemirror/lang-python";
import { bracketMatching, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { EditorState, StateEffect, StateField } from "@codemirror/state";
import { Decoration, EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { classHighlighter } from "@lezer/highlight";

/** Pixels around a line that is brought into view: some lines before and after it, and more than the page's header. */
const SIGHT_MARGIN = 90;

/** @type {import("@codemirror/state").StateEffectType<number | null>} */
const setMark = StateEffect.define();

/** The line that an error names, until the text changes. */
const markedLine = StateField.define({
  create: () => Decoration.none,
  update(marks, transaction) {
    for (const effect of transaction.effects) {
      if (!effect.is(setMark)) continue;
      const number = effect.value;
      if (number === null || number < 1 || number > transaction.state.doc.lines) return Decoration.none;
      const line = transaction.state.doc.line(number);
      return Decoration.set([Decoration.line({ class: "edu-line--error" }).range(line.from)]);
    }
    return transaction.docChanged ? Decoration.none : marks;
  },
  provide: (field) => EditorView.decorations.from(field),
});

/**
 * @typedef {object} Editor
 * @property {() => string} read
 * @property {(text: string) => void} write one undoable change
 * @property {(line: number | null) => void} mark a line is brought into view
 * @property {() => void} focus
 * @property {() => void} destroy
 */

/**
 * @param {{parent: Element, text: string, label: string, hint: string, onChange: (text: string) => void,
 *   onRun: () => void, onEscape: () => void}} options `hint` is the id of the element that describes the keys
 * @returns {Editor}
 */
export function createEditor({ parent, text, label, hint, onChange, onRun, onEscape }) {
  const view = new EditorView({
    parent,
    state: EditorState.create({
      doc: text,
      extensions: [
        keymap.of([
          { key: "Mod-Enter", run: () => (onRun(), true) },
          { key: "Escape", run: () => (onEscape(), false) },
        ]),
        lineNumbers(),
        history(),
        python(),
        indentUnit.of("    "),
        EditorState.tabSize.of(4),
        indentOnInput(),
        bracketMatching(),
        closeBrackets(),
        highlightActiveLine(),
        markedLine,
        syntaxHighlighting(classHighlighter),
        keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap, indentWithTab]),
        // The box around the text scrolls and takes no focus itself; the text, which takes it, says so with a tabindex.
        EditorView.contentAttributes.of({ "aria-label": label, "aria-describedby": hint, spellcheck: "false", tabindex: "0" }),
        EditorView.updateListener.of((update) => {
          if (update.docChanged) onChange(update.state.doc.toString());
        }),
      ],
    }),
  });
  return {
    read: () => view.state.doc.toString(),
    write: (next) => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: next } }),
    mark(line) {
      const known = line !== null && line >= 1 && line <= view.state.doc.lines;
      const seen = known ? [EditorView.scrollIntoView(view.state.doc.line(line).from, { y: "nearest", yMargin: SIGHT_MARGIN })] : [];
      view.dispatch({ effects: [setMark.of(line), ...seen] });
    },
    focus: () => view.focus(),
    destroy: () => view.destroy(),
  };
}
