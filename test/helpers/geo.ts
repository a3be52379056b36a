import { join } from "node:path";
import { writeMmdb } from "./mmdb.ts";
import { temporaryFolder } from "./process.ts";

/** Two tiny databases of addresses, as an operator would name them: cities and networks. */
export function writeGeoFiles(): { city: string; asn: string } {
  const folder = temporaryFolder();
  const [city, asn] = [join(folder, "city.mmdb"), join(folder, "asn.mmdb")];
  const berlin = {
    continent: { code: "EU", names: { en: "Europe" } },
    country: { iso_code: "DE", is_in_european_union: true, names: { en: "Germany", de: "Deutschland" } },
    city: { names: { en: "Berlin" } },
    location: { latitude: 52.5, longitude: 13.4, time_zone: "Europe/Berlin" },
    postal: { code: "10115" },
    subdivisions: [{ iso_code: "BE", names: { en: "Land Berlin" } }],
  };
  const austin = {
    continent: { code: "NA" },
    country: { iso_code: "US" },
    city: { names: { en: "Austin" } },
    location: { latitude: 30.271_28, longitude: -97.743_06, time_zone: "America/Chicago", metro_code: 635 },
    postal: { code: "78701" },
    subdivisions: [
      { iso_code: "TX", names: { en: "Texas" } },
      { iso_code: "TRA", names: { en: "Travis" } },
    ],
  };
  const flat = { country_code: "FR", city: "Lyon", state1: "Rhône", latitude: 45.75, longitude: 4.85 };
  writeMmdb(city, {
    "192.0.2.0/25": berlin,
    "198.51.100.0/24": austin,
    "203.0.113.0/24": flat,
    "2001:db8::/32": berlin,
  });
  const network = (number: number, name: string) => ({
    autonomous_system_number: number,
    autonomous_system_organization: name,
  });
  writeMmdb(
    asn,
    { "192.0.2.0/24": network(64_496, "Example Net"), "198.51.100.0/24": network(64_497, "Test") },
    {
      ipVersion: 4,
    },
  );
  return { city, asn };
}
