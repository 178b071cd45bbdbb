/**
 * Serves the copy of the course that a reader keeps on this device. Only that reader's click registers it (offline.js).
 *
 * A worker belongs to one version of the site, named in its own address (`sw.js?version=…`), and answers from that
 * version's cache alone. The page fills the cache before it registers the worker, so nothing half-stored is ever used.
 */

const worker = /** @type {ServiceWorkerGlobalScope} */ (/** @type {unknown} */ (self));
const { searchParams, pathname: own } = new URL(location.href);
const site = new URL("./", location.href);
const cacheName = `deepseek-edu ${site.pathname} ${searchParams.get("version")}`;

/**
 * The kept file for an address, however the reader or a host spells it; queries and anchors do not matter.
 * @param {string} address
 */
async function kept(address) {
  const { origin, pathname } = new URL(address);
  for (const path of [pathname, `${pathname}index.html`, `${pathname}.html`]) {
    const found = await caches.match(origin + path, { cacheName });
    if (found) return unpacked(found);
  }
  return undefined;
}

/**
 * A kept file as the site has it; text was packed when it was kept.
 * @param {Response} found
 */
function unpacked(found) {
  if (found.headers.get("x-edu-packed") !== "gzip" || !found.body) return found;
  const headers = new Headers(found.headers);
  headers.delete("x-edu-packed");
  return new Response(found.body.pipeThrough(new DecompressionStream("gzip")), { headers });
}

/** @param {FetchEvent} event */
async function answer({ request, clientId }) {
  // A page that this version does not hold came from the network, and so does everything it asks for.
  const client = request.mode === "navigate" ? undefined : await worker.clients.get(clientId);
  if (client && !(await kept(client.url))) return fetch(request);
  return (await kept(request.url)) ?? fetch(request);
}

worker.addEventListener("fetch", (event) => {
  const { href, pathname, searchParams } = new URL(event.request.url);
  if (event.request.method !== "GET" || !href.startsWith(site.href) || pathname === own) return;
  if (searchParams.has("keep")) return; // the page asks for the site as it is now
  event.respondWith(answer(event));
});

worker.addEventListener("message", ({ data }) => {
  if (data === "take over") worker.skipWaiting();
});
