import type { ScreenProps } from "../../shell/route.ts";
import { TraceScreen } from "./trace-screen.tsx";

/** The trace of a request to any zone of the account. */
export default function AccountTrace({ account }: ScreenProps) {
  return <TraceScreen account={account} url="" />;
}
