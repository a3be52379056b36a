import { createContext } from "preact";
import { useContext } from "preact/hooks";

/** A zone as the API shows it; the fields that the console uses. */
export interface Zone {
  id: string;
  name: string;
  status: "initializing" | "pending" | "active" | "moved";
  paused: boolean;
  type: string;
  name_servers: string[];
  vanity_name_servers?: string[];
  original_name_servers: string[] | null;
  created_on: string;
  modified_on: string;
  activated_on: string | null;
  account: { id: string; name: string };
  plan: { id: string; name: string; legacy_id?: string };
}

export const ZoneContext = createContext<Zone | undefined>(undefined);

/** The zone of the current screen. Must be called below a `ZoneFrame`. */
export function useZone(): Zone {
  const zone = useContext(ZoneContext);
  if (zone === undefined) throw new Error("Expected a zone from a frame around this screen");
  return zone;
}
