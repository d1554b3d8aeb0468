// Blocks that scroll can be scrolled from the keyboard, and each block's buttons have a name of their own.
window.addEventListener("load", () => {
  for (const code of document.querySelectorAll("pre > code")) code.tabIndex = 0;
  document
    .querySelectorAll("nav.md-code__nav")
    .forEach((buttons, index) => buttons.setAttribute("aria-label", `Code block ${index + 1}`));
});
