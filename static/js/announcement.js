// Hides the announcement that the visitor dismissed. Loaded before the first paint, so that nothing flashes.
"use strict";

{
  const sheet = new CSSStyleSheet();
  document.adoptedStyleSheets.push(sheet);
  const hide = (id) => sheet.replaceSync(`#announcement-${CSS.escape(id)} { display: none; }`);

  // Browsers that store nothing for a site throw an error.
  try {
    const dismissed = localStorage.getItem("dismissed-announcement");
    if (dismissed) hide(dismissed);
  } catch {
    // The announcement is shown.
  }

  document.addEventListener("click", ({ target }) => {
    const id = target.closest("[data-dismiss]")?.dataset.dismiss;
    if (!id) return;
    hide(id);
    document.getElementById("main").focus({ preventScroll: true });
    try {
      localStorage.setItem("dismissed-announcement", id);
    } catch {
      // Hidden until the next page.
    }
  });
}
