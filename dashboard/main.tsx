import { render } from "preact";
import { keepFocus } from "./core/focus.ts";
import { App } from "./shell/app.tsx";

keepFocus();
render(<App />, document.getElementById("app")!);
