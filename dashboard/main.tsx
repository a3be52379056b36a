import { render } from "preact";
import { keepFocus } from "./core/focus.ts";
import { currentPath } from "./core/router.ts";
import { App } from "./shell/app.tsx";
import { find, loadScreen } from "./shell/screens.ts";

keepFocus();
const first = find(currentPath())?.route;
// The frame shows a failure.
if (first !== undefined) loadScreen(first).catch(() => undefined);
render(<App />, document.getElementById("app")!);
