import rules from "./rules.ts";

await rules();
