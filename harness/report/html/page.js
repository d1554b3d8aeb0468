// Hides a backend in every table and picture. The page is complete without it.
const show = document.getElementById("show");
if (show) {
  show.hidden = false;
  show.addEventListener("change", ({ target }) => {
    for (const part of document.querySelectorAll(`[data-series="${target.value}"]`)) {
      part.toggleAttribute("data-off", !target.checked);
    }
  });
}
