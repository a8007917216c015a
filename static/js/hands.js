// What the visitor has in hand stays there when a part of the page is exchanged: the focus, a
// selection, the scroll position, what was unfolded.
"use strict";

const hands = {
  // Whether a part must wait, because its new version has nothing to hand over to.
  hold(old, copy) {
    const focused = document.activeElement;
    if (hands.picks(old)) return true;
    return old.contains(focused) && !(focused.matches("a, pre, summary") && hands.twin(focused, copy));
  },

  // Whether some of its text is selected.
  picks(part) {
    const picked = getSelection();
    return !picked.isCollapsed && picked.containsNode(part, true);
  },

  // The same in another version: the link to that address, or the element with these words.
  twin(element, copy) {
    const name = (it) => it.getAttribute("href") ?? it.textContent;
    return [...copy.querySelectorAll(element.localName)].find((other) => name(other) === name(element));
  },

  // Make an exchange inside of a part; give the focus to what `find` names for the focused element.
  keepFocus(part, find, exchange) {
    const focused = part.contains(document.activeElement) && document.activeElement;
    exchange();
    if (focused) find(focused)?.focus({ preventScroll: true });
  },

  // Open in the copy what is open in the old part.
  unfold(old, copy) {
    if (old.open) copy.open = true;
    for (const { id } of old.querySelectorAll("details[id][open]")) {
      copy.querySelector(`details#${CSS.escape(id)}`)?.setAttribute("open", "");
    }
  },

  exchange(old, copy) {
    hands.unfold(old, copy);
    const tables = [...old.querySelectorAll(".scroll")], newer = copy.querySelectorAll(".scroll");
    const scrolled = [...old.querySelectorAll("pre, .scroll")].filter((part) => part.scrollLeft || part.scrollTop);
    const moved = scrolled.map((part) => [
      part.localName === "pre" ? hands.twin(part, copy) : newer[tables.indexOf(part)],
      { left: part.scrollLeft, top: part.scrollTop, behavior: "instant" },
    ]);
    hands.keepFocus(old, (focused) => hands.twin(focused, copy), () => old.replaceWith(copy));
    for (const [part, to] of moved) part?.scrollTo(to);
  },
};
