// Puts fresh rows into a board: a changed score is tinted once, a row that moved slides once.
"use strict";

const rows = {
  still: matchMedia("(prefers-reduced-motion: reduce)"),

  // What came while a part of the board is selected waits.
  late: {},

  // `fragments` are rows by node as the server renders them; `order` is the whole order, if new.
  apply(fragments, order) {
    const late = rows.late;
    rows.late = { fragments: { ...late.fragments, ...fragments }, order: order ?? late.order };
    rows.settle();
  },

  settle() {
    const body = document.querySelector("[data-rows]");
    const { fragments, order } = rows.late;
    if (!fragments || (body && hands.picks(body))) return;
    rows.late = {};
    if (!body) return;
    const find = (focused) => {
      const { node } = focused.closest("tr").dataset;
      const row = [...body.rows].find((row) => row.dataset.node === node);
      return row && hands.twin(focused, row);
    };
    hands.keepFocus(body, find, () => rows.put(body, fragments, order));
  },

  put(body, fragments, order) {
    const known = new Map([...body.rows].map((row) => [row.dataset.node, row]));
    const tops = new Map([...known].map(([node, row]) => [node, row.getBoundingClientRect().top]));
    for (const [node, html] of Object.entries(fragments)) {
      const row = rows.parse(html), old = known.get(node);
      if (old?.id) row.id = old.id; // the one that was looked for
      if (old && rows.score(old) !== rows.score(row)) rows.tint(row);
      old?.replaceWith(row);
      known.set(node, row);
    }
    if (!order) return;
    body.replaceChildren(...order.map((node) => known.get(node)).filter(Boolean));
    for (const row of body.rows) rows.slide(row, tops.get(row.dataset.node));
  },

  parse(html) {
    const body = document.createElement("tbody");
    body.innerHTML = html;
    return body.rows[0];
  },

  score: (row) => row.querySelector("data").value,

  tint(row) {
    const cell = row.querySelector(".score");
    cell.classList.add("fresh");
    setTimeout(() => cell.classList.remove("fresh"), 1000);
  },

  slide(row, top) {
    const by = top === undefined ? 0 : top - row.getBoundingClientRect().top;
    if (by && !rows.still.matches) row.animate([{ transform: `translateY(${by}px)` }, { transform: "none" }], 180);
  },
};
