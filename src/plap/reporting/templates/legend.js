"use strict";
for (const button of document.querySelectorAll(".legend button")) {
  const lines = [...button.closest("section").querySelectorAll("svg .series")];
  const own = (line) => line.dataset.line === button.dataset.line;
  const alone = (on) => lines.forEach((line) => line.classList.toggle("faded", on && !own(line)));
  for (const event of ["pointerenter", "focus"]) button.addEventListener(event, () => alone(true));
  for (const event of ["pointerleave", "blur"]) button.addEventListener(event, () => alone(false));
  button.addEventListener("click", () => {
    const shown = button.getAttribute("aria-pressed") === "false";
    button.setAttribute("aria-pressed", String(shown));
    lines.filter(own).forEach((line) => line.classList.toggle("hidden", !shown));
  });
}
