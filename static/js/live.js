// Keeps the page up to date over /ws/live/: rows and pill by deltas, other regions by asking again.
"use strict";

{
  const POLL_MS = 15000;
  const SILENCE_MS = 40000; // the server speaks at least every 15 s
  const TRIES = 3; // before the page is polled instead
  const link = document.getElementById("link");
  const sources = new Map(); // each region's HTML as the server sent it
  const regions = (root) => root.querySelectorAll("[data-region][id]");
  let socket, seq, asOf = new Date(), failures = 0, greeted = false, retry, watchdog, asking;

  function setLink(state) {
    link.hidden = false;
    link.className = `link ${state}`;
    link.textContent = state === "live" ? link.dataset.live : `${link.dataset[state]} ${site.describe(asOf, "clock")}`;
  }

  function connect() {
    clearTimeout(retry);
    if (document.hidden || socket) return;
    const address = new URL("/ws/live/", location);
    address.protocol = address.protocol.replace("http", "ws");
    address.search = location.search.includes("window=") ? location.search : "";
    socket = new WebSocket(address);
    socket.onmessage = (event) => receive(JSON.parse(event.data));
    socket.onclose = lose;
  }

  function lose() {
    socket = undefined;
    clearTimeout(watchdog);
    if (document.hidden) return;
    failures += 1;
    const polling = failures > TRIES;
    setLink(polling ? "polling" : "reconnecting");
    if (polling) ask(0);
    retry = setTimeout(connect, polling ? POLL_MS : 500 * 2 ** failures * (0.5 + Math.random()));
  }

  function receive(message) {
    if (message.type === "delta" && message.seq !== seq + 1) return socket.close(); // missed one
    const changed = message.type === "snapshot" ? greeted : message.chart || message.pill;
    greeted = true;
    seq = message.seq;
    failures = 0;
    clearTimeout(watchdog);
    watchdog = setTimeout(() => socket?.close(), SILENCE_MS);
    site.setClock(message.now);
    asOf = new Date(message.as_of);
    setLink("live");
    if (message.pill) fill("pill", message.pill);
    rows.apply(message.rows, message.order);
    if (changed) ask(1500 * Math.random()); // not all visitors at once
    site.showTimes();
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
      const answer = await fetch(location.href).catch(() => undefined);
      if (!answer?.ok) return;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (failures > TRIES) pollFrom(page);
      const ids = new Set([...regions(page), ...regions(document)].map((region) => region.id));
      const changed = [...ids].filter((id) => takeOver(document.getElementById(id), page.getElementById(id)));
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

  function takeOver(old, fresh) {
    if (!old || !fresh || sources.get(fresh.id) === fresh.outerHTML) return false;
    sources.set(fresh.id, fresh.outerHTML);
    const copy = document.importNode(fresh, true);
    if (old.open) copy.open = true;
    old.replaceWith(copy);
    return true;
  }

  for (const region of regions(document)) sources.set(region.id, region.outerHTML);
  site.showTimes();
  setInterval(() => site.showTimes(), 1000);
  if (link) {
    document.addEventListener("visibilitychange", () => (document.hidden ? socket?.close() : connect()));
    connect();
  }
}
