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
  const KEPT_MS = 1000; // what pages have in common may be that old
  const SPREAD_MS = 1500; // not all visitors at once
  const MAKING_MS = 5000; // a page may have read what it shows that long before its own clock
  const sources = new Map(); // each region's HTML as the server sent it
  const late = new Map(); // regions that came while the visitor had the old ones in hand
  const refreshed = document.querySelector("[data-refresh]"); // shows what no message tells of
  const regions = (root) => root.querySelectorAll("[data-region][id]");
  let socket, epoch, seq, asOf = new Date(), failures = 0, retry, watchdog, asking, drawnFor;
  let happening = document.querySelector("#pill [data-happening]")?.textContent;
  let known = Date.parse(document.body.dataset.now) - MAKING_MS; // changes until then are shown or asked for

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
    const polling = failures > TRIES;
    setLink(polling ? "polling" : "reconnecting");
    if (polling) ask(0);
    retry = setTimeout(connect, polling ? POLL_MS : 500 * 2 ** failures * (0.5 + Math.random()));
  }

  function receive(message) {
    if (message.type === "delta" && message.seq !== seq + 1) return socket.close(); // comes back for it
    failures = 0;
    listen();
    asOf = new Date(message.as_of);
    document.getElementById("pill").hidden = false;
    if (message.type !== "resumed") apply(message);
    setLink("live");
    catchUp(message.chart || message.turn || message.announced ? message.as_of : message.since);
    site.showTimes();
  }

  // Ask for the page as it is since a change, unless it was made after that.
  function catchUp(since) {
    if (!(Date.parse(since) > known)) return;
    known = Date.parse(since);
    document.body.dataset.since = since;
    ask(KEPT_MS + SPREAD_MS * Math.random());
  }

  function apply(message) {
    ({ epoch, seq } = message);
    if (message.now) site.setClock(message.now);
    if (message.pill) fillPill(message.pill);
    for (const [id, html] of Object.entries(message.regions)) {
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

  // Ask for this page again and take over the regions that changed.
  function ask(delay) {
    if ("still" in document.body.dataset) return; // to ask for the page would change something
    clearTimeout(asking);
    asking = setTimeout(async () => {
      const asked = location.href, { since } = document.body.dataset;
      // Under the name of the change there is no page that was kept from before it.
      const answer = await fetch(asked, since && { headers: { "X-Since": since } }).catch(() => undefined);
      if (!answer?.ok) return failures > TRIES || ask(POLL_MS);
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (location.href !== asked || document.body.dataset.since !== since) return; // the visitor or the swarm went on
      if (failures > TRIES) pollFrom(page);
      const ids = new Set([...regions(page), ...regions(document)].map((region) => region.id));
      const changed = [...ids].filter((id) => {
        const fresh = page.getElementById(id);
        return fresh && takeOver(document.getElementById(id), fresh.outerHTML);
      });
      redraw(changed, since);
      site.showTimes();
    }, delay);
  }

  function redraw(changed, since = drawnFor) {
    const charted = (part) => part.closest("figure") || part.querySelector("[data-figure]");
    if (since === drawnFor && !changed.some((id) => charted(document.getElementById(id)))) return;
    drawnFor = since;
    window.drawCharts?.();
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
    socket = epoch = undefined;
    known = Date.now() + site.skew - MAKING_MS;
    clearTimeout(asking);
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
  if (refreshed) setInterval(() => document.hidden || failures > TRIES || ask(0), 1000 * refreshed.dataset.refresh);
}
