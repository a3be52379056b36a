import { Page } from "../../parts/layout.tsx";

export default function Overview() {
  return <Page title="Overview">…</Page>;
}
