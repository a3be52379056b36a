/* Runs before the first paint, so that a reload does not flash in the other theme. */
const chosen = localStorage.getItem("selvedge-theme");
if (chosen === "light" || chosen === "dark") document.documentElement.dataset["theme"] = chosen;
