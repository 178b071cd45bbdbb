/**
 * <edu-offline>: keeps the whole course on this device for a reader who asks for it, and takes it away again.
 *
 * `edu/offline.json`, written with the site, lists every file with its hash. A copy is one cache, named after the hash
 * of that list; it is filled and checked here, text packed, and only a complete one gets the service worker (`sw.js`)
 * that unpacks and serves it. Before the reader's click nothing is stored or registered.
 */

import { EduElement, base, button, fromFile, make, megabytes } from "./base.js";

/**
 * `stored` bytes are loaded and lie on the device; each file has its SHA-256, its size, and the size it is kept at: less,
 * where packing saves any.
 * @typedef {{version: string, stored: number, files: Record<string, [string, number, number]>}} Listing
 */

const site = new URL("../", base);
const listingUrl = new URL("offline.json", base);
const PREFIX = `deepseek-edu ${site.pathname} `;
const WORKER = `${site}sw.js?version=`;
const AT_ONCE = 4;
const PATIENCE_MS = 3_000;
/** Headers that describe the transfer, not the file. */
const TRANSFER_HEADERS = ["content-encoding", "content-length", "vary"];
/** Header of a kept file that the worker has to unpack. */
const PACKED = "x-edu-packed";

/** A failure whose message is a sentence for the reader. */
class Trouble extends Error {}

/** Why nothing can be kept here, or "". */
function refusal() {
  if (fromFile()) return "This page was opened as a file, so the course is on this device already.";
  if (!globalThis.isSecureContext) return "Browsers keep a copy only of sites whose address begins with https. This one does not; everything else works.";
  try {
    if (navigator.serviceWorker && caches) return "";
  } catch {
    // a browser that refuses all storage throws instead of answering
  }
  return "This browser keeps no copies, perhaps because its window is private. Everything else works.";
}

/** True when the files of this page come from the reader's device. */
export const onDevice = () => !refusal() && navigator.serviceWorker.controller?.scriptURL.startsWith(WORKER) === true;

/** The site as it is now. @returns {Promise<Listing>} */
async function readListing() {
  const answer = await fetch(`${listingUrl}?keep`, { cache: "no-cache" });
  if (!answer.ok) throw new Trouble("The list of the course’s files is missing from this site.");
  return answer.json();
}

/** Our registration; one of an enclosing site is not ours. */
async function registered() {
  const found = await navigator.serviceWorker.getRegistration(site);
  return found?.scope === site.href ? found : undefined;
}

/** @param {ServiceWorker | null | undefined} worker */
const cacheOf = (worker) => (worker ? PREFIX + worker.scriptURL.slice(WORKER.length) : "");

/** The copy on this device. @returns {Promise<Listing | null>} */
async function readCopy() {
  const cacheName = cacheOf((await registered())?.active);
  const listing = cacheName && (await caches.match(listingUrl, { cacheName }));
  return listing ? listing.json() : null;
}

/** Delete what no worker serves: an interrupted copy, or the version before. */
async function tidy() {
  const found = await registered();
  const served = [found?.installing, found?.waiting, found?.active].map(cacheOf);
  const ours = (await caches.keys()).filter((name) => name.startsWith(PREFIX));
  await Promise.all(ours.filter((name) => !served.includes(name)).map((name) => caches.delete(name)));
}

/**
 * A file of the site as its listing describes it, packed if that saves room.
 * @param {string} path @param {Listing["files"][string]} listed @param {AbortSignal} signal
 */
async function load(path, [hash, size, kept], signal) {
  const answer = await fetch(new URL(`${path}?keep=${hash}`, site), { signal }).catch((error) => {
    throw signal.aborted ? error : new Trouble(`${path} could not be loaded.`);
  });
  if (!answer.ok) throw new Trouble(`${path} is missing from this site.`);
  const bytes = await answer.arrayBuffer();
  const found = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  if ([...found].map((byte) => byte.toString(16).padStart(2, "0")).join("") !== hash) {
    throw new Trouble(`${path} is not as the site lists it; the course may be changing right now, so try again later.`);
  }
  const headers = new Headers(answer.headers);
  for (const name of TRANSFER_HEADERS) headers.delete(name);
  if (kept >= size || !("CompressionStream" in globalThis)) return new Response(bytes, { headers });
  headers.set(PACKED, "gzip");
  return new Response(new Response(bytes).body?.pipeThrough(new CompressionStream("gzip")), { headers });
}

/**
 * Fill the cache of a version, with what an earlier copy has and the site for the rest.
 * @param {Listing} listing @param {Listing | null} earlier @param {(stored: number) => void} progress @param {AbortSignal} signal
 */
async function fill(listing, earlier, progress, signal) {
  const cache = await caches.open(PREFIX + listing.version);
  const left = Object.entries(listing.files);
  let stored = 0;
  const take = async () => {
    for (let next = left.pop(); next; next = left.pop()) {
      signal.throwIfAborted();
      const [path, listed] = next;
      const url = new URL(path, site);
      const same = earlier?.files[path]?.[0] === listed[0];
      const known = same && (await caches.match(url, { cacheName: PREFIX + earlier.version }));
      await cache.put(url, known || (await load(path, listed, signal)));
      progress((stored += listed[2]));
    }
  };
  const takers = Array.from({ length: AT_ONCE }, () => take().finally(() => (left.length = 0)));
  await Promise.allSettled(takers); // nothing is put into the cache any more
  await Promise.all(takers);
  await cache.put(listingUrl, Response.json(listing));
}

/** Give the site to the worker of a version whose cache is full. @param {string} version */
async function serve(version) {
  const { installing, waiting, active } = await navigator.serviceWorker.register(WORKER + version, { updateViaCache: "none" });
  const worker = /** @type {ServiceWorker} */ (installing ?? waiting ?? active);
  await new Promise((resolve, reject) => {
    const look = () => {
      if (worker.state === "installed") worker.postMessage("take over");
      if (worker.state === "activated") resolve(null);
      if (worker.state === "redundant") reject(new Trouble("The browser gave up the copy."));
    };
    worker.addEventListener("statechange", look);
    look();
  });
}

/**
 * Do what only one tab may do at a time. A page that has just opened holds the lock for a moment itself, to tidy.
 * @param {() => Promise<void>} work
 */
async function alone(work) {
  const signal = AbortSignal.timeout(PATIENCE_MS);
  await navigator.locks.request(PREFIX, { signal }, work).catch((error) => {
    throw error === signal.reason ? new Trouble("Another tab of the course is busy with the copy.") : error;
  });
}

/** Storing goes on while the reader walks through the course, so it belongs to no element. */
class Keeper extends EventTarget {
  /** @type {AbortController | null} */
  running = null;
  stored = 0;
  size = 0;
  /** A sentence on how the last attempt ended, if it failed. */
  trouble = "";

  /** @param {Listing} listing */
  async keep(listing) {
    if (this.running) return;
    const { signal } = (this.running = new AbortController());
    Object.assign(this, { size: listing.stored, trouble: "" });
    this.#tell();
    navigator.storage?.persist?.().catch(() => {}); // a wish: the browser may say no
    try {
      await alone(() => this.#store(listing, signal));
    } catch (error) {
      this.trouble = sentence(error, listing);
    }
    this.running = null;
    this.#tell();
  }

  /** @param {Listing} listing @param {AbortSignal} signal */
  async #store(listing, signal) {
    const earlier = await readCopy();
    try {
      await fill(listing, earlier, (stored) => this.#tell(stored), signal);
      await serve(listing.version);
    } catch (error) {
      if (!earlier) await (await registered())?.unregister();
      throw error;
    } finally {
      await tidy();
    }
  }

  async remove() {
    await navigator.locks.request(PREFIX, async () => {
      await (await registered())?.unregister();
      await tidy();
    });
    this.trouble = "";
    this.#tell();
  }

  #tell(stored = 0) {
    this.stored = stored;
    this.dispatchEvent(new Event("change"));
  }
}

const keeper = new Keeper();

/** @param {any} error @param {Listing} listing */
function sentence(error, listing) {
  if (error.name === "AbortError") return "Stopped. Nothing new was kept.";
  if (error instanceof Trouble) return `${error.message} Nothing new was kept.`;
  if (error.name === "QuotaExceededError") return `This browser has no room for ${megabytes(listing.stored)}. Nothing new was kept.`;
  return `This browser refuses to keep a copy (${error.message}). Nothing new was kept.`;
}

/**
 * For every page: finish what an interrupted attempt left, follow a new version as a whole, and tell of a changed site.
 */
export async function watchCopy() {
  if (refusal()) return;
  const kept = onDevice();
  if (kept) navigator.serviceWorker.addEventListener("controllerchange", () => location.reload());
  try {
    await navigator.locks.request(PREFIX, { ifAvailable: true }, (lock) => lock && tidy());
    const copy = kept && navigator.onLine && (await readCopy());
    if (!copy || copy.version === (await readListing()).version) return;
    const link = make("a", { href: new URL("progress.html#keep-this-course-on-this-device", site).href }, "Update your copy");
    const notice = make("p", { class: "edu-notice edu-offline__changed", role: "status" }, "The course has changed since you kept it. ", link, ".");
    document.querySelector(".md-container")?.before(notice); // outside of what instant navigation swaps
  } catch {
    // storage is refused or the network is away: nothing to tidy, nothing to tell
  }
}

export class EduOffline extends EduElement {
  /** @type {Listing | null} the site as it is now */
  listing = null;

  mount() {
    this.notice = make("p", { class: "edu-notice", role: "status" });
    this.line = make("p", { role: "status" });
    this.meter = make("progress", { "aria-label": "Stored so far" });
    this.count = make("span");
    this.storing = make("p", { hidden: true }, this.meter, " ", this.count);
    this.buttons = { keep: button("keep", ""), stop: button("stop", "Stop"), remove: button("remove", "Remove from this device") };
    this.bar = make("div", { class: "edu-progress__bar" }, ...Object.values(this.buttons));
    this.replaceChildren(this.line, this.storing, this.notice, this.bar);
    this.on(this.bar, "click", ({ target }) => {
      const { action } = target.dataset;
      if (action === "keep" && this.listing) keeper.keep(this.listing);
      if (action === "stop") keeper.running?.abort();
      if (action === "remove") keeper.remove();
    });
    this.on(keeper, "change", () => this.update());
    this.onLeave(() => this.replaceChildren());
    this.#start();
  }

  async #start() {
    this.#show("checking", "", []);
    if (!refusal()) this.listing = await readListing().catch(() => null);
    if (this.mounted) await this.update();
  }

  async update() {
    const { listing } = this;
    const reason = refusal();
    if (reason) return this.#show("refused", reason, []);
    if (keeper.running) {
      this.meter?.setAttribute("max", String(keeper.size));
      this.meter?.setAttribute("value", String(keeper.stored));
      if (this.count) this.count.textContent = `${megabytes(keeper.stored)} of ${megabytes(keeper.size)}`;
      return this.#show("storing", "Storing the course. Leave this window open until it is done.", ["stop"]);
    }
    const copy = await readCopy().catch(() => null);
    if (!this.mounted || keeper.running) return;
    if (copy) {
      const kept = `Kept: ${megabytes(copy.stored)}, version ${copy.version}. The course opens from this device, with or without a network.`;
      if (!listing || listing.version === copy.version) return this.#show("kept", kept, ["remove"]);
      const fresh = Object.entries(listing.files).filter(([path, [hash]]) => copy.files[path]?.[0] !== hash);
      const size = megabytes(Math.max(1e5, fresh.reduce((sum, [, [, , bytes]]) => sum + bytes, 0)));
      return this.#show("changed", `${kept} The site has changed since: there is version ${listing.version}.`, ["keep", "remove"], `Update (${size})`);
    }
    if (!listing) return this.#show("away", "Nothing is kept. What there is to keep could not be asked: the site does not answer.", []);
    const sizes = `${megabytes(listing.stored)} would be loaded and lie on this device`;
    return this.#show("idle", `Nothing is kept. ${sizes}: every page and notebook, and Python.`, ["keep"], `Keep on this device (${megabytes(listing.stored)})`);
  }

  /** @param {string} state @param {string} line @param {string[]} shown names of buttons @param {string} [label] of the first */
  #show(state, line, shown, label = "") {
    if (!this.line || !this.storing || !this.notice || !this.buttons) return;
    this.dataset.state = state;
    if (this.line.textContent !== line) this.line.textContent = line;
    if (this.notice.textContent !== keeper.trouble) this.notice.textContent = keeper.trouble;
    this.storing.hidden = state !== "storing";
    if (label) this.buttons.keep.textContent = label;
    const focused = /** @type {HTMLElement | null} */ (this.querySelector(":focus"));
    for (const [name, element] of Object.entries(this.buttons)) element.hidden = !shown.includes(name);
    if (focused?.hidden) this.querySelector(/** @type {"button"} */ ("button:not([hidden])"))?.focus();
  }
}
