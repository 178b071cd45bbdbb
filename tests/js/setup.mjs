// The little of a browser that the pure modules touch while they are loaded.
globalThis.document = { currentScript: null, querySelector: () => null };
globalThis.location = new URL("http://site.test/sub/chapter.html");
globalThis.HTMLElement = class {};
globalThis.localStorage = undefined;

/** An object with the part of Storage that the store uses. */
export function fakeStorage({ full = false } = {}) {
  const kept = new Map();
  return {
    full,
    kept,
    getItem: (key) => kept.get(key) ?? null,
    removeItem: (key) => kept.delete(key),
    setItem(key, text) {
      if (this.full) throw new DOMException("full", "QuotaExceededError");
      kept.set(key, text);
    },
  };
}
