/**
 * What a widget says about an answer of Python: whole sentences. Pure.
 *
 * @typedef {{type: string, message: string, line: number | null}} Fault
 */

/** @param {string} text with a full stop, if it does not end a sentence already */
const ended = (text) => (/[.!?…]$/.test(text) ? text : `${text}.`);

/**
 * @param {Fault} [fault] `message` may be empty: many errors of Python have none
 */
export function faultWords({ type, message, line } = { type: "Python gave no answer", message: "", line: null }) {
  const where = line ? `${type}, line ${line} of the code` : type;
  const said = message.trim();
  return `${ended(said ? `${where}: ${said}` : where)} The picture shows the last good result.`;
}

/**
 * Whose code made the picture.
 * @param {string | null} source the edited text
 * @param {string[]} missing functions of the mechanism that it does not define
 * @param {string[]} names all functions of the mechanism
 */
export function liveWords(source, missing, names) {
  if (source === null) return "Live: computed by Python on this page.";
  if (missing.length === 0) return "Live: computed by your edited code.";
  if (missing.length === names.length) {
    const why = source.trim() === "" ? "Your text is empty" : `Your text defines none of the functions ${listed(names)}`;
    return `Live, but not by your code. ${why}: the original code is used.`;
  }
  const [verb, what] = missing.length === 1 ? ["is", "original"] : ["are", "originals"];
  return `Live: computed by your edited code. ${listed(missing)} ${verb} missing in it: the ${what} ${verb} used.`;
}

/** @param {string[]} names */
const listed = (names) => (names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`);

/**
 * What stands over a picture of other values than the reader's, and what the status line says of it.
 * @param {boolean} near whether it is the nearest that was prepared, or what was there before
 * @param {string} step that it shows in place of the reader's, such as `Step “4 Replay”`, or ""
 * @returns {{over: string, said: string}}
 */
export function nearWords(near, step) {
  if (!near) return { over: "the values before yours", said: "The picture still shows the earlier values" };
  if (step) return { over: `not your step: this is ${step}`, said: `The picture does not show your step: it is ${step}, the nearest that was prepared` };
  return { over: "near your values", said: "The picture shows the nearest values that were prepared" };
}
