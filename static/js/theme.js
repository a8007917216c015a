// Set the visitor's theme before the first paint, so that nothing flashes.
"use strict";

const theme = {
  // `light` or `dark` if the visitor chose one, else `system`.
  get chosen() {
    return document.documentElement.dataset.theme ?? "system";
  },

  choose(name) {
    if (name === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = name;
  },

  // Browsers that keep nothing for a site refuse localStorage altogether.
  recall() {
    try {
      return localStorage.getItem("theme") ?? "system";
    } catch {
      return "system";
    }
  },

  keep(name) {
    try {
      localStorage.setItem("theme", name);
    } catch {
      // It lasts until the next page.
    }
  },
};

theme.choose(theme.recall());
