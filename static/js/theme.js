// Set the visitor's theme before the first paint, so that nothing flashes.
"use strict";
{
  const chosen = localStorage.getItem("theme");
  if (chosen) document.documentElement.dataset.theme = chosen;
}
