// What every page does: times in the reader's zone, countdowns, theme and language switch, copy buttons.
"use strict";

// The page's language; figures keep the digits of tables and downloads.
const LOCALE = new Intl.Locale(document.documentElement.lang, { numberingSystem: "latn" });

const site = {
  // How far the server's clock is ahead of this one, in milliseconds.
  skew: 0,

  setClock(iso) {
    site.skew = Date.parse(iso) - Date.now();
  },

  showTimes(root = document) {
    for (const time of root.querySelectorAll("time[data-show]")) {
      time.textContent = site.describe(new Date(time.dateTime), time.dataset.show);
    }
  },

  describe(date, how) {
    const seconds = (date.getTime() - Date.now() - site.skew) / 1000;
    if (how === "countdown") return document.body.dataset.in.replace("[time]", describeCountdown(seconds));
    if (how === "ago") return describeAge(Math.min(0, seconds)); // a clock that runs ahead
    if (how === "clock") return date.toLocaleTimeString(LOCALE, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
    return date.toLocaleString(LOCALE, { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
  },
};

function describeCountdown(seconds) {
  const left = Math.max(0, Math.round(seconds));
  const pad = (number) => String(number).padStart(2, "0");
  const clock = `${pad(Math.floor(left / 60) % 60)}:${pad(left % 60)}`;
  return left < 3600 ? clock.replace(/^0/, "") : `${Math.floor(left / 3600)}:${clock}`;
}

function describeAge(seconds) {
  const format = new Intl.RelativeTimeFormat(LOCALE, { numeric: "auto" });
  const steps = [["day", 86400], ["hour", 3600], ["minute", 60]];
  const [unit, length] = steps.find(([, length]) => Math.abs(seconds) >= length) ?? ["second", 1];
  return format.format(Math.round(seconds / length), unit);
}

function offerTheme() {
  const button = document.querySelector("[data-theme-switch]");
  const next = { system: "light", light: "dark", dark: "system" };
  const tell = () => {
    const words = button.dataset[theme.chosen];
    button.title = words;
    button.setAttribute("aria-label", words);
  };
  button.hidden = false;
  button.addEventListener("click", () => {
    theme.choose(next[theme.chosen]);
    theme.keep(theme.chosen);
    tell();
    document.dispatchEvent(new Event("themechange"));
  });
  tell();
}

// A menu closes when the visitor goes elsewhere or presses Escape.
function closeMenus() {
  for (const menu of document.querySelectorAll("details.menu")) {
    document.addEventListener("pointerdown", (event) => menu.contains(event.target) || (menu.open = false));
    menu.addEventListener("focusout", (event) => menu.contains(event.relatedTarget) || (menu.open = false));
    menu.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      menu.open = false;
      menu.querySelector("summary").focus();
    });
  }
}

site.offerCopies = (root = document) => {
  if (!navigator.clipboard) return; // only on secure pages
  const { copy, copied } = document.body.dataset;
  for (const block of root.querySelectorAll("pre.command")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = copy;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(block.querySelector("code").textContent);
      button.textContent = copied;
      setTimeout(() => (button.textContent = copy), 1500);
    });
    block.append(button);
  }
};

if (document.body.dataset.now) site.setClock(document.body.dataset.now);
offerTheme();
// When live.js has noted the regions as the server sent them, without buttons.
document.addEventListener("DOMContentLoaded", () => site.offerCopies());
closeMenus();
