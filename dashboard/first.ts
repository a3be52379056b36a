/* Stands in the page itself, so it runs before anything else is loaded. */

// Before the first paint, so that a reload does not flash in the other theme.
const chosen = localStorage.getItem("selvedge-theme");
if (chosen === "light" || chosen === "dark") document.documentElement.dataset["theme"] = chosen;

// The server is asked who is signed in while the code is loaded. A start link signs in first.
if (!location.hash.startsWith("#start=")) {
  const asked = fetch("/dashboard/session", { headers: { "x-selvedge-dashboard": "1" } });
  // core/session.ts handles a failure.
  asked.catch(() => undefined);
  Object.assign(window, { firstSession: asked });
}
