// Shows a closed round as it was at a second of it: answers that had not come yet are hidden.
"use strict";

{
  const PLAY_MS = 12000; // the whole round, played
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const records = new Map(); // by address
  let playing;

  const parts = () => {
    const bar = document.querySelector("[data-replay]");
    return bar && { bar, at: bar.querySelector("[data-replay-at]"), table: document.querySelector("[data-replay-table]") };
  };

  async function read(address) {
    if (!records.has(address)) {
      const answer = await fetch(address);
      if (!answer.ok) return undefined; // the final state stays
      records.set(address, await answer.json());
    }
    return records.get(address);
  }

  async function show() {
    const { bar, at, table } = parts();
    const record = await read(bar.dataset.replay);
    if (!record) return;
    const second = Number(at.value), rows = table.tBodies[0].rows;
    let given = 0;
    for (const [row, question, came] of record.answers) {
      const later = came > second;
      given += !later;
      rows[row].cells[question + 1].classList.toggle("later", later);
    }
    const said = bar.dataset.says.replace("[second]", at.value).replace("[given]", given).replace("[all]", record.answers.length);
    bar.querySelector("output").textContent = said;
    at.setAttribute("aria-valuetext", said);
    bar.dataset.shown = at.value;
  }

  function stop() {
    cancelAnimationFrame(playing);
    playing = undefined;
    const found = parts();
    if (found) found.bar.querySelector("[data-replay-play]").textContent = found.bar.dataset.play;
  }

  function play() {
    const { bar, at } = parts();
    const whole = Number(at.max), from = Number(at.value) < whole ? Number(at.value) : 0;
    const began = performance.now() - (from / whole) * PLAY_MS;
    bar.querySelector("[data-replay-play]").textContent = bar.dataset.pause;
    const tick = (now) => {
      if (!at.isConnected) return stop();
      at.value = Math.min(whole, ((now - began) / PLAY_MS) * whole);
      show();
      if (now - began >= PLAY_MS) return stop();
      playing = requestAnimationFrame(tick);
    };
    playing = requestAnimationFrame(tick);
  }

  // On the document, because the page replaces the table when something changed.
  document.addEventListener("input", (event) => {
    if (!event.target.matches("[data-replay-at]")) return;
    stop();
    show();
  });
  document.addEventListener("click", (event) => {
    if (!event.target.matches("[data-replay-play]")) return;
    if (playing) stop();
    else if (!still.matches) play();
  });
}
