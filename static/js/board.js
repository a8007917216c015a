// The leaderboard's filters, pages and windows without a full reload: what htmx exchanged is
// drawn and watched again. Without this file the same links and forms load the page.
"use strict";

// Fields left empty stay out of the address.
document.addEventListener("htmx:configRequest", (event) => {
  const parameters = event.detail.parameters;
  for (const name of [...Object.keys(parameters)]) if (parameters[name] === "") delete parameters[name];
});

document.addEventListener("htmx:afterSettle", () => {
  window.drawCharts?.();
  live.restart();
  site.showTimes();
  document.getElementById("found")?.scrollIntoView({ block: "center" });
});

// The header stays while the board is exchanged: its languages lead to the address of now.
document.addEventListener("htmx:pushedIntoHistory", () => {
  for (const link of document.querySelectorAll(".menu a[hreflang]")) {
    const query = new URLSearchParams(location.search);
    query.set("lang", link.hreflang);
    link.search = query;
  }
});
