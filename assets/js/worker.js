/**
 * The worker that runs Python. It boots Pyodide from this site's own files, loads what is asked for, and answers one
 * message at a time. It never decides anything: stopping, time limits and comparison belong to the page.
 *
 * In:  {id, op: "boot" | "view" | "load" | "case", ...}
 * Out: {id, value} or {id, error: {kind, message, file?}}, and {progress: {file, bytes}} while loading.
 */

const indexURL = new URL(`runtime/pyodide-${PYODIDE_VERSION}/`, import.meta.url).href;
const packageBaseUrl = new URL("runtime/", import.meta.url).href;
const EMPTY_WASM = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0]);
const PAGE_BYTES = 65_536;

/** Between the messages and the harness that the command line uses too. It keeps arguments, never expected values. */
const LAB = `
import json
from types import SimpleNamespace
from deepseek_edu.grading import harness

state = {}

def load(code, data):
    lab = json.loads(data)
    state["cases"] = [(case["function"], case["args"]) for case in lab["cases"]]
    try:
        state["namespace"] = harness.load_submission(code, tuple(lab["functions"]), partial=True)
    except harness.SubmissionError as error:
        return json.dumps(error.as_dict())
    return "null"

def case(index):
    function, args = state["cases"][index]
    return harness.dump_answer(harness.run_case(state["namespace"], function, args))

SimpleNamespace(load=load, case=case)
`;

/** A failure the page has a sentence for. */
class Failure extends Error {
  /** @param {string} kind @param {string} message */
  constructor(kind, message) {
    super(message);
    this.kind = kind;
  }
}

/** @type {any} */
let python = null;
/** @type {any} */
let evaluate = null;
/** @type {any} */
let lab = null;
let memoryRefused = false;

// Promises inside Pyodide's loader reject beside the one that is awaited; the page is told once, by `describe`.
addEventListener("unhandledrejection", (event) => event.preventDefault());

// Pyodide reports a dying interpreter with console.error; here that is an expected outcome with a name of its own.
console.error = console.warn;

/** Cap the memory of the interpreter, so that runaway code meets MemoryError and not the reader's whole machine. */
function capMemory(/** @type {number} */ megabytes) {
  const grow = WebAssembly.Memory.prototype.grow;
  WebAssembly.Memory.prototype.grow = function (pages) {
    if (this.buffer.byteLength + pages * PAGE_BYTES > megabytes * 1e6) {
      memoryRefused = true;
      throw new RangeError("the memory limit of this page is reached");
    }
    return grow.call(this, pages);
  };
}

/**
 * Pyodide only logs a failed instantiation and then waits for ever; this turns it into a rejection.
 * @param {WebAssembly.Module | undefined} known compiled by an earlier worker of this page
 */
function watchInstantiation(known) {
  /** @type {(error: unknown) => void} */
  let fail = () => {};
  const failed = new Promise((_, reject) => (fail = reject));
  const stream = WebAssembly.instantiateStreaming;
  WebAssembly.instantiateStreaming = async (source, imports) => {
    try {
      const response = await source;
      if (!response.ok) throw new Failure("missing", "pyodide.asm.wasm");
      const result = known
        ? { module: known, instance: await WebAssembly.instantiate(known, imports) }
        : await stream.call(WebAssembly, response, imports);
      if (!known) postMessage({ module: result.module });
      return result;
    } catch (error) {
      fail(error);
      throw error;
    }
  };
  return failed;
}

/**
 * Boot from the site's files, or from the memory snapshot that the first boot on this page handed out. The snapshot
 * holds the bare interpreter, no packages; it makes a restart three times as fast.
 *
 * @param {{packages: string[], memoryMb: number, module?: WebAssembly.Module, snapshot?: ArrayBuffer}} options
 */
async function boot({ packages, memoryMb, module, snapshot }) {
  try {
    new WebAssembly.Module(EMPTY_WASM);
  } catch {
    throw new Failure("blocked", "WebAssembly");
  }
  new PerformanceObserver((list) => {
    for (const entry of /** @type {PerformanceResourceTiming[]} */ (list.getEntries())) {
      postMessage({ progress: { file: entry.name.split("/").at(-1), bytes: entry.encodedBodySize } });
    }
  }).observe({ type: "resource", buffered: true });
  capMemory(memoryMb);
  watchFetch();
  const failed = watchInstantiation(module);
  const lockFileContents = fetch(new URL("pyodide-lock.json", packageBaseUrl), { cache: "no-cache" }).then((answer) => {
    if (!answer.ok) throw new Failure("missing", "pyodide-lock.json");
    return answer.text();
  });
  const { loadPyodide } = await import("pyodide"); // not earlier: it uses WebAssembly as soon as it is loaded
  const how = snapshot ? { _loadSnapshot: snapshot } : { _makeSnapshot: true };
  python = await Promise.race([loadPyodide({ indexURL, packageBaseUrl, lockFileContents, ...how }), failed]);
  if (!snapshot) handOutSnapshot();
  await load(["deepseek-edu", ...packages]);
}

function handOutSnapshot() {
  try {
    const { buffer } = python.makeMemorySnapshot();
    postMessage({ snapshot: buffer }, { transfer: [buffer] });
  } catch (error) {
    console.warn("no snapshot: restarts take the time of a start", error);
  }
}

/** @param {string[]} packages */
async function load(packages) {
  /** @type {string[]} */
  const troubles = [];
  const errorCallback = (/** @type {string} */ text) => troubles.push(text);
  await python.loadPackage(packages, { messageCallback() {}, errorCallback });
  for (const name of packages) {
    if (name in python.loadedPackages) continue;
    const file = missingFile();
    throw file ? new Failure("missing", file) : new Failure("broken", `${name}: ${troubles.join("; ")}`);
  }
}

/** @type {string[]} addresses that the server refused */
const refused = [];

/** Note what the server refuses: Pyodide goes on without it, and the browser's own record may come too late. */
function watchFetch() {
  const plain = globalThis.fetch;
  globalThis.fetch = async (...request) => {
    const response = await plain(...request);
    if (response.status >= 400) refused.push(response.url);
    return response;
  };
}

/** Name the file that did not arrive, as far as the browser tells. */
function missingFile() {
  if (refused.length > 0) return refused[0].split("/").at(-1);
  const entries = /** @type {PerformanceResourceTiming[]} */ (performance.getEntriesByType("resource"));
  return entries.find((entry) => entry.responseStatus >= 400)?.name.split("/").at(-1);
}

/** @type {Record<string, (message: any) => unknown>} */
const operations = {
  boot,

  /** Add packages to a running interpreter. */
  packages: ({ packages }) => load(packages),

  /** One view of a widget, as JSON text. */
  view({ widget, values, source }) {
    evaluate ??= python.pyimport("deepseek_edu.widgets.live").evaluate_json;
    return evaluate(widget, JSON.stringify(values), source ?? undefined);
  },

  /**
   * Run the top level of the learner's file. The lab's data travels as the text the site was built with, because
   * JavaScript would write 2.0 as 2 and -0.0 as 0. Answers "null" or an error as JSON text.
   */
  load({ code, data }) {
    lab ??= python.runPython(LAB);
    return lab.load(code, data);
  },

  /** One case of the lab, as JSON text. */
  case({ index }) {
    return lab.case(index);
  },
};

addEventListener("message", async ({ data: { id, op, ...message } }) => {
  memoryRefused = false;
  try {
    postMessage({ id, value: await operations[op](message), memoryRefused });
  } catch (error) {
    postMessage({ id, error: describe(error, op) });
  }
});

/**
 * @param {any} error
 * @param {string} op
 */
function describe(error, op) {
  const message = String(error?.message ?? error);
  if (error instanceof Failure) return { kind: error.kind, message };
  if (error?.constructor?.name === "PythonError") {
    return { kind: memoryRefused || /^MemoryError/m.test(message) ? "memory" : "python", message };
  }
  if (op === "boot" || op === "packages") {
    const file = missingFile();
    if (file) return { kind: "missing", message: file };
    if (error instanceof WebAssembly.CompileError) return { kind: "blocked", message };
    if (!navigator.onLine) return { kind: "offline", message };
    return { kind: memoryRefused || error instanceof RangeError ? "memory" : "broken", message };
  }
  return { kind: memoryRefused ? "memory" : "crashed", message };
}
