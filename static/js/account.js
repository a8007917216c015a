// Account pages: says when a security key or passkey could not be used.
"use strict";

{
  const { failed } = document.currentScript.dataset;

  // allauth tells of it by an event; left alone it would only write to the console.
  document.addEventListener("allauth.error", (event) => {
    event.preventDefault();
    let notice = document.getElementById("failed");
    if (!notice) {
      notice = document.createElement("p");
      notice.id = "failed";
      notice.className = "notice";
      notice.setAttribute("role", "alert");
      document.querySelector("main").prepend(notice);
    }
    notice.textContent = failed;
  });
}
