// Keeps the page up to date over /ws/live/: rows, pill and other regions by numbered deltas; what
// those do not carry (charts, the other pages) by asking for the page again.
"use strict";

const live = {
  // Watch what the page shows now, after its view was exchanged.
  restart() {},
};

{
  const POLL_MS = 15000;
  const SILENCE_MS = 20000; // the server speaks at least every 6 s
  const TRIES = 3; // before the page is polled instead
  const CLOSED_TOO_MANY_VIEWS = 4429;
  const link = document.getElementById("link");
  const said = document.getElementById("said"); // what screen readers are told, on changes only
  const PAUSE_MS = 1000; // changes often come in groups
  const SPREAD_MS = 1500; // not all visitors at once
  const sources = new Map(); // each region's HTML as the server sent it
  const sent = new Set(); // ids of the regions that messages carry
  const late = new Map(); // regions that came while the visitor had the old ones in hand
  const refreshed = document.querySelector("[data-refresh]"); // shows what no message tells of
  const regions = (root) => root.querySelectorAll("[data-region][id]");
  const isPolling = () => failures > TRIES;
  let socket, epoch, seq, asOf = new Date(), failures = 0, retry, watchdog;
  let state; // of the site, as an opaque token; data-state has that of the page
  let misses = 0; // times that the page was fetched and had another state
  let asking; // the timer or the request for this page
  let happening = document.querySelector("#pill [data-happening]")?.textContent;

  function setLink(state) {
    const before = link.dataset.state ?? "live"; // as it opens, a page need not say so
    link.hidden = false;
    link.className = `link ${state}`;
    link.dataset.state = state;
    link.textContent = state === "live" ? link.dataset.live : `${link.dataset[state]} ${site.describe(asOf, "clock")}`;
    if (state !== before) said.textContent = link.textContent;
  }

  function findAddress() {
    const address = new URL("/ws/live/", location);
    address.protocol = address.protocol.replace("http", "ws");
    const query = new URLSearchParams((document.querySelector("main [data-view]") ?? document.body).dataset.view);
    query.set("lang", document.documentElement.lang);
    if (epoch) query.set("resume", `${epoch}:${seq}`);
    if ("DecompressionStream" in window) query.set("packed", "1");
    address.search = query;
    return address;
  }

  function connect() {
    clearTimeout(retry);
    if (document.hidden || socket) return;
    const own = (socket = new WebSocket(findAddress()));
    own.binaryType = "blob";
    listen();
    let inbox = Promise.resolve(); // unpacking takes turns: messages keep their order
    own.onmessage = (event) => {
      inbox = inbox.then(() => unpack(event.data)).then((message) => socket === own && receive(message));
    };
    own.onclose = (event) => socket === own && lose(event.code);
  }

  async function unpack(data) {
    if (typeof data === "string") return JSON.parse(data);
    return new Response(data.stream().pipeThrough(new DecompressionStream("gzip"))).json();
  }

  // Hear from the server in time, or try again.
  function listen() {
    clearTimeout(watchdog);
    watchdog = setTimeout(() => socket?.close(), SILENCE_MS);
  }

  function lose(code) {
    socket = undefined;
    clearTimeout(watchdog);
    if (document.hidden) return;
    failures = code === CLOSED_TOO_MANY_VIEWS ? TRIES + 1 : failures + 1;
    setLink(isPolling() ? "polling" : "reconnecting");
    if (isPolling()) ask(0);
    retry = setTimeout(connect, isPolling() ? POLL_MS : 500 * 2 ** failures * (0.5 + Math.random()));
  }

  function receive(message) {
    if (message.type === "delta" && message.seq !== seq + 1) return socket.close(); // comes back for it
    failures = 0;
    listen();
    asOf = new Date(message.as_of);
    document.getElementById("pill").hidden = false;
    if (message.type !== "resumed") apply(message);
    setLink("live");
    if (message.state !== state) misses = 0;
    state = message.state;
    catchUp();
    site.showTimes();
  }

  // Ask for the page again if it shows another state of the site than the latest message.
  function catchUp() {
    const shown = document.body.dataset.state; // empty while the database is down
    if (asking || !shown || state === shown) return;
    ask(Math.min(PAUSE_MS * 2 ** misses, POLL_MS) + SPREAD_MS * Math.random());
  }

  function apply(message) {
    ({ epoch, seq } = message);
    if (message.now) site.setClock(message.now);
    if (message.pill) fillPill(message.pill);
    for (const [id, html] of Object.entries(message.regions)) {
      sent.add(id);
      takeOver(document.getElementById(id), html);
    }
    rows.apply(message.rows, message.order);
  }

  function fillPill(html) {
    takeOver(document.getElementById("pill"), `<div id="pill">${html}</div>`);
    tellHappening();
  }

  function tellHappening() {
    const now = document.querySelector("#pill [data-happening]")?.textContent;
    if (now !== happening) said.textContent = now;
    happening = now;
  }

  // Ask for this page after a delay, instead of an earlier request.
  function ask(delay) {
    if ("still" in document.body.dataset) return; // to ask for the page would change something
    asking?.abort();
    const own = (asking = new AbortController());
    const timer = setTimeout(() => fetchPage(own), delay);
    own.signal.addEventListener("abort", () => clearTimeout(timer));
  }

  async function fetchPage(own) {
    const answer = await fetch(location.href, { signal: own.signal }).catch(() => undefined);
    const text = answer?.ok && (await answer.text().catch(() => undefined));
    if (own.signal.aborted) return;
    asking = undefined;
    if (!text) return isPolling() || ask(POLL_MS);
    show(new DOMParser().parseFromString(text, "text/html"));
    misses += 1;
    if (socket && !isPolling()) catchUp(); // the site has changed, or another process does not know yet
  }

  // Take over the regions of a fetched page that changed.
  function show(page) {
    if (isPolling()) pollFrom(page);
    const ids = new Set([...regions(page), ...regions(document)].map((region) => region.id));
    const changed = [...ids].filter((id) => {
      // Messages are newer than a page from a cache.
      const fresh = (isPolling() || !sent.has(id)) && page.getElementById(id);
      return fresh && takeOver(document.getElementById(id), fresh.outerHTML);
    });
    const isOtherState = page.body.dataset.state !== document.body.dataset.state;
    document.body.dataset.state = page.body.dataset.state;
    if (isOtherState) window.drawCharts?.();
    else redraw(changed);
    site.showTimes();
  }

  function redraw(changed) {
    const isCharted = (part) => part.closest("figure") || part.querySelector("[data-figure]");
    if (changed.some((id) => isCharted(document.getElementById(id)))) window.drawCharts?.();
  }

  function pollFrom(page) {
    const fresh = [...page.querySelectorAll("[data-rows] > tr")];
    const pill = page.getElementById("pill");
    document.getElementById("pill").hidden = !pill; // while the database is down, nobody knows
    if (pill) fillPill(pill.innerHTML);
    rows.apply(Object.fromEntries(fresh.map((row) => [row.dataset.node, row.outerHTML])), fresh.map((row) => row.dataset.node));
    asOf = new Date(page.body.dataset.now ?? Date.now() + site.skew);
    setLink("polling");
  }

  // Put a region in the place of an old one, unless it is the same; what is in use waits.
  function takeOver(old, html) {
    if (old) late.delete(old.id);
    if (!old || sources.get(old.id) === html) return false;
    const holder = document.createElement("template");
    holder.innerHTML = html;
    const copy = holder.content.firstElementChild;
    if (!copy) return false;
    if (hands.hold(old, copy)) {
      late.set(old.id, html);
      return false;
    }
    sources.set(old.id, html);
    hands.exchange(old, copy);
    site.offerCopies(copy);
    return true;
  }

  // Put in place what waited for the visitor to let go.
  function settle() {
    redraw([...late].filter(([id, html]) => takeOver(document.getElementById(id), html)).map(([id]) => id));
    rows.settle();
    tellHappening();
  }

  live.restart = () => {
    const old = socket;
    asking?.abort();
    socket = epoch = asking = undefined;
    sent.clear();
    late.clear();
    rows.late = {};
    old?.close();
    for (const region of regions(document)) sources.set(region.id, region.outerHTML);
    if (link) connect();
  };

  for (const region of regions(document)) sources.set(region.id, region.outerHTML);
  site.showTimes();
  setInterval(() => {
    settle();
    site.showTimes();
  }, 1000);
  if (link) {
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) return socket?.close();
      connect();
      if (refreshed) ask(0);
    });
    connect();
  }
  if (refreshed) setInterval(() => document.hidden || isPolling() || ask(0), 1000 * refreshed.dataset.refresh);
}
