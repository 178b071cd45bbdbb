/**
 * The page's one Python: a worker started on demand, a queue of calls, and its replacement when a call has to be
 * stopped. Nothing here needs SharedArrayBuffer or special headers.
 */

import { fileUrl, megabytes } from "./base.js";
import { onDevice } from "./offline.js";

/** @typedef {"stopped"|"timeout"|"crashed"|"memory"|"blocked"|"missing"|"offline"|"broken"|"python"|"file"} Kind */

/** Most memory one interpreter may take; an empty one with numpy needs about 60 MB. */
export const MEMORY_MB = 512;
/** A restart from the snapshot takes a third of a second; one that takes this long is given up for a plain start. */
const SNAPSHOT_LIMIT_MS = 8_000;

/**
 * What an interpreter leaves behind for its successor: the compiled module, and the memory just after the start.
 * @typedef {{module?: WebAssembly.Module, snapshot?: ArrayBuffer}} Legacy
 */

/** A call that ended without a value. `kind` is its name, `message` the detail. */
export class PythonFailure extends Error {
  /** @param {Kind} kind @param {string} [message] */
  constructor(kind, message = "") {
    super(message || kind);
    this.kind = kind;
  }
}

/**
 * One plain sentence for each failure of Python itself.
 * @param {PythonFailure} failure
 */
export function explain({ kind, message }) {
  switch (kind) {
    case "blocked":
      return "This browser blocks WebAssembly, which Python needs here. The page stays readable without it.";
    case "missing":
      return `Python could not start: the file ${message} is missing from this site. The page stays readable without it.`;
    case "offline":
      return "Python could not be loaded because this device is offline. The page stays readable without it.";
    case "memory":
      return "The memory limit was reached.";
    case "file":
      return "Live Python does not run from a file: start serve.py in the course folder and open the address it prints.";
    case "stopped":
      return "Stopped.";
    case "timeout":
      return "The time limit was reached.";
    case "crashed":
      return "The Python interpreter ended.";
    case "python":
      return message.trim().split("\n").at(-1) ?? message;
    default:
      return `Python could not start (${message}). The page stays readable without it.`;
  }
}

/** One worker and the promises of the calls it has been sent. */
class Interpreter {
  /** @type {Promise<void> | null} */
  booted = null;
  /** True once it has answered its boot. */
  up = false;

  /** @param {(event: {file: string, bytes: number}) => void} onProgress @param {Legacy} legacy */
  constructor(onProgress, legacy) {
    /** @type {Map<number, {resolve: (value: any) => void, reject: (error: PythonFailure) => void}>} */
    this.waiting = new Map();
    this.next = 0;
    this.dead = false;
    this.legacy = { ...legacy };
    this.packages = new Set();
    this.worker = new Worker(fileUrl(EDU_FILES["worker.js"]), { type: "module" });
    this.worker.onmessage = ({ data }) => {
      if (data.progress) return onProgress(data.progress);
      if (data.module) return (legacy.module = data.module);
      if (data.snapshot) return (legacy.snapshot = data.snapshot);
      const call = this.waiting.get(data.id);
      this.waiting.delete(data.id);
      if (data.error) call?.reject(new PythonFailure(data.error.kind, data.error.message));
      else call?.resolve(data);
    };
    this.worker.onerror = (event) => {
      event.preventDefault();
      const started = event.message !== undefined && event.filename;
      this.end(new PythonFailure(started ? "crashed" : navigator.onLine ? "missing" : "offline", EDU_FILES["worker.js"]));
    };
  }

  /** @param {string} op @param {object} message @returns {Promise<any>} */
  send(op, message) {
    if (this.dead) return Promise.reject(new PythonFailure("stopped"));
    const id = ++this.next;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      this.worker.postMessage({ id, op, ...message });
    });
  }

  /** @param {string[]} packages */
  boot(packages) {
    this.booted ??= this.send("boot", { packages, memoryMb: MEMORY_MB, ...this.legacy }).then(() => {
      this.up = true;
      this.legacy = {};
      for (const name of packages) this.packages.add(name);
    });
    return this.booted;
  }

  /** @param {string[]} packages */
  async need(packages) {
    await this.boot(packages);
    const missing = packages.filter((name) => !this.packages.has(name));
    if (missing.length === 0) return;
    await this.send("packages", { packages: missing });
    for (const name of missing) this.packages.add(name);
  }

  /** @param {PythonFailure} reason */
  end(reason) {
    if (this.dead) return;
    this.dead = true;
    this.worker.terminate();
    for (const { reject } of this.waiting.values()) reject(reason);
    this.waiting.clear();
  }
}

/**
 * Events: `progress` ({file, bytes, loaded}), `state` ("off" | "booting" | "ready" | "busy") and `restarted` (what was
 * in the interpreter is gone).
 */
export class Python extends EventTarget {
  /** @type {Interpreter | null} */
  #current = null;
  /** @type {Promise<unknown>} */
  #queue = Promise.resolve();
  /** @type {Legacy} */
  #legacy = {};
  /** @type {Set<string>} */
  #packages = new Set();
  /** @type {Map<string, number>} */
  #files = new Map();
  /** @type {((reason: PythonFailure) => void) | null} rejects the call that waits for the start */
  #stopWaiting = null;
  state = "off";

  /** True once an interpreter has booted on this page. */
  get running() {
    return this.state === "ready" || this.state === "busy";
  }

  /** @param {string} state */
  #enter(state) {
    this.state = state;
    this.dispatchEvent(new CustomEvent("state", { detail: state }));
  }

  #start() {
    return new Interpreter(({ file, bytes }) => {
      this.#files.set(file, bytes);
      const loaded = [...this.#files.values()].reduce((sum, size) => sum + size, 0);
      this.dispatchEvent(new CustomEvent("progress", { detail: { file, bytes, loaded } }));
    }, this.#legacy);
  }

  /**
   * Make sure Python runs with these packages.
   * @param {string[]} [packages]
   * @returns {Promise<Interpreter>}
   */
  async boot(packages = []) {
    for (const name of packages) this.#packages.add(name);
    if (this.#current?.dead) this.#current = null;
    const current = (this.#current ??= this.#start());
    if (!this.running) this.#enter("booting");
    const shortcut = !current.up && current.legacy.snapshot !== undefined;
    try {
      await withLimit(current.need([...this.#packages]), shortcut ? SNAPSHOT_LIMIT_MS : Infinity);
    } catch (error) {
      const ours = this.#current === current;
      current.end(new PythonFailure("stopped"));
      if (!ours) throw error;
      this.#current = null;
      if (shortcut) {
        // Without the snapshot the start is slower, and nothing else changes.
        delete this.#legacy.snapshot;
        return this.boot();
      }
      this.#enter("off");
      throw error;
    }
    if (this.state === "booting") this.#enter("ready");
    return current;
  }

  /**
   * Run one operation after those already waiting.
   * @param {string} op
   * @param {object} message
   * @param {{timeoutMs?: number, packages?: string[]}} [options]
   * @returns {Promise<string>}
   */
  call(op, message, { timeoutMs = 10_000, packages = [] } = {}) {
    const result = this.#queue.then(() => this.#run(op, message, timeoutMs, packages));
    this.#queue = result.catch(() => {});
    return result;
  }

  /**
   * @param {string} op
   * @param {object} message
   * @param {number} timeoutMs
   * @param {string[]} packages
   */
  async #run(op, message, timeoutMs, packages) {
    /** @type {Promise<never>} */
    const stopped = new Promise((_, reject) => (this.#stopWaiting = reject));
    const current = await Promise.race([this.boot(packages), stopped]);
    this.#stopWaiting = null;
    this.#enter("busy");
    const limit = setTimeout(() => this.stop(new PythonFailure("timeout")), timeoutMs);
    try {
      const { value, memoryRefused } = await current.send(op, message);
      if (memoryRefused) this.#replace(new PythonFailure("memory"));
      return value;
    } catch (error) {
      const failure = /** @type {PythonFailure} */ (error);
      if (failure.kind === "crashed" || failure.kind === "memory") this.#replace(failure);
      throw failure;
    } finally {
      clearTimeout(limit);
      if (this.#current === current && !current.dead) this.#enter("ready");
    }
  }

  /**
   * End what runs now, for a reason the caller of it will see, and put another interpreter in place.
   * @param {PythonFailure} [reason]
   */
  stop(reason = new PythonFailure("stopped")) {
    if (this.state === "busy") this.#replace(reason);
    else this.#stopWaiting?.(reason); // a start goes on: the next call finds Python ready
  }

  /** @param {PythonFailure} reason */
  #replace(reason) {
    const old = this.#current;
    this.#current = null;
    this.#enter("off");
    this.dispatchEvent(new CustomEvent("restarted", { detail: reason }));
    this.boot().catch(() => {});
    old?.end(reason);
  }

  /** Give the memory back: the reader left the page that used Python. */
  release() {
    this.#current?.end(new PythonFailure("stopped"));
    this.#current = null;
    this.#legacy = {};
    this.#packages.clear();
    this.#files.clear();
    if (this.state !== "off") this.#enter("off");
  }
}

/**
 * @template T @param {Promise<T>} promise @param {number} milliseconds
 * @returns {Promise<T>}
 */
function withLimit(promise, milliseconds) {
  if (milliseconds === Infinity) return promise;
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new PythonFailure("timeout")), milliseconds);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

/** The page's Python. */
export const python = new Python();

/**
 * A line that says what is being loaded.
 * @param {{file: string, loaded: number}} progress
 * @param {string} total as the button said it
 */
export function progressLine({ file, loaded }, total) {
  const what = /numpy/.test(file) ? "numpy" : /deepseek/.test(file) ? "this course's code" : "Python";
  if (onDevice()) return `Loading ${what} from this device …`; // what a worker serves has no transfer size
  return `Loading ${what}: ${megabytes(loaded)} of ${total}, from this site …`;
}
