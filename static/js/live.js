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
  const sources = new Map(); // each region's HTML as the server sent it
  const regions = (root) => root.querySelectorAll("[data-region][id]");
  let socket, epoch, seq, asOf = new Date(), failures = 0, greeted = false, retry, watchdog, asking;

  function setLink(state) {
    link.hidden = false;
    link.className = `link ${state}`;
    link.textContent = state === "live" ? link.dataset.live : `${link.dataset[state]} ${site.describe(asOf, "clock")}`;
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
    const changed = message.type === "snapshot" ? greeted : message.chart || message.turn;
    greeted = true;
    failures = 0;
    clearTimeout(watchdog);
    watchdog = setTimeout(() => socket?.close(), SILENCE_MS);
    asOf = new Date(message.as_of);
    if (message.type !== "resumed") apply(message);
    setLink("live");
    if (changed) ask(1500 * Math.random()); // not all visitors at once
    site.showTimes();
  }

  function apply(message) {
    ({ epoch, seq } = message);
    if (message.now) site.setClock(message.now);
    if (message.pill) fill("pill", message.pill);
    for (const [id, html] of Object.entries(message.regions)) {
      takeOver(document.getElementById(id), html);
    }
    rows.apply(message.rows, message.order);
  }

  function fill(id, html) {
    if (sources.get(id) === html) return;
    sources.set(id, html);
    document.getElementById(id).innerHTML = html;
  }

  // Ask for this page again and take over the regions that changed.
  function ask(delay) {
    clearTimeout(asking);
    asking = setTimeout(async () => {
      const asked = location.href;
      const answer = await fetch(asked).catch(() => undefined);
      if (!answer?.ok) return;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (location.href !== asked) return; // the visitor went on
      if (failures > TRIES) pollFrom(page);
      const ids = new Set([...regions(page), ...regions(document)].map((region) => region.id));
      const changed = [...ids].filter((id) => {
        const fresh = page.getElementById(id);
        return fresh && takeOver(document.getElementById(id), fresh.outerHTML);
      });
      if (changed.length) window.drawCharts?.();
      site.showTimes();
    }, delay);
  }

  function pollFrom(page) {
    const fresh = [...page.querySelectorAll("[data-rows] > tr")];
    fill("pill", page.getElementById("pill").innerHTML);
    rows.apply(Object.fromEntries(fresh.map((row) => [row.dataset.node, row.outerHTML])), fresh.map((row) => row.dataset.node));
    asOf = new Date(page.body.dataset.now);
    setLink("polling");
  }

  // Put a region in the place of an old one, unless it is the same or holds what is in use.
  function takeOver(old, html) {
    if (!old || sources.get(old.id) === html) return false;
    sources.set(old.id, html);
    const holder = document.createElement("template");
    holder.innerHTML = html;
    const copy = holder.content.firstElementChild;
    if (!copy) return false;
    if (old.open) copy.open = true;
    old.replaceWith(copy);
    return true;
  }

  live.restart = () => {
    const old = socket;
    socket = epoch = undefined;
    greeted = false;
    clearTimeout(asking);
    old?.close();
    for (const region of regions(document)) sources.set(region.id, region.outerHTML);
    if (link) connect();
  };

  for (const region of regions(document)) sources.set(region.id, region.outerHTML);
  site.showTimes();
  setInterval(() => site.showTimes(), 1000);
  if (link) {
    document.addEventListener("visibilitychange", () => (document.hidden ? socket?.close() : connect()));
    connect();
  }
}
