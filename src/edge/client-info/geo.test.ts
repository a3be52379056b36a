import { writeFileSync } from "node:fs";
import { expect, it, onTestFinished, vi } from "vitest";
import { writeGeoFiles } from "../../../test/helpers/geo.ts";
import { writeMmdb } from "../../../test/helpers/mmdb.ts";
import { GeoDatabase, GeoError, type GeoFiles } from "./geo.ts";

async function open(files: GeoFiles, faults: GeoError[] = []): Promise<GeoDatabase> {
  const database = await GeoDatabase.open(files, (error) => faults.push(error), 10);
  onTestFinished(() => database.close());
  return database;
}

it("finds the location and network of an address", async () => {
  const geo = await open(writeGeoFiles());
  expect(geo.lookUp("192.0.2.1")).toEqual({
    country: "DE",
    isEUCountry: "1",
    continent: "EU",
    city: "Berlin",
    region: "Land Berlin",
    regionCode: "BE",
    postalCode: "10115",
    timezone: "Europe/Berlin",
    latitude: "52.50000",
    longitude: "13.40000",
    asn: 64_496,
    asOrganization: "Example Net",
  });
  expect(geo.lookUp("198.51.100.7")).toMatchObject({
    country: "US",
    metroCode: "635",
    latitude: "30.27128",
    longitude: "-97.74306",
    subdivision2Code: "TRA",
    asn: 64_497,
  });
  expect(geo.lookUp("198.51.100.7")).not.toHaveProperty("isEUCountry");
});

it("reads flat records, IPv6, and incomplete records", async () => {
  const geo = await open(writeGeoFiles());
  expect(geo.lookUp("203.0.113.1")).toEqual({
    country: "FR",
    isEUCountry: "1",
    city: "Lyon",
    region: "Rhône",
    latitude: "45.75000",
    longitude: "4.85000",
  });
  expect(geo.lookUp("2001:db8::1")).toMatchObject({ city: "Berlin" });
  expect(geo.lookUp("192.0.2.200")).toEqual({ asn: 64_496, asOrganization: "Example Net" });
});

it.each(["10.0.0.1", "2001:db9::", "::1", "nonsense", ""])("knows nothing of %j", async (address) => {
  expect((await open(writeGeoFiles())).lookUp(address)).toEqual({});
});

it("works with one file of the two", async () => {
  const { city, asn } = writeGeoFiles();
  expect((await open({ city })).lookUp("192.0.2.1")).not.toHaveProperty("asn");
  expect((await open({ asn })).lookUp("192.0.2.1")).toEqual({ asn: 64_496, asOrganization: "Example Net" });
});

it("reloads a replaced file, and keeps its old data when the new file is broken", async () => {
  const { city } = writeGeoFiles();
  const faults: GeoError[] = [];
  const geo = await open({ city }, faults);
  expect(geo.lookUp("192.0.2.1")["country"]).toBe("DE");
  writeMmdb(city, { "192.0.2.0/24": { country: { iso_code: "SE" } } });
  await vi.waitFor(() => expect(geo.lookUp("192.0.2.1")["country"]).toBe("SE"));
  writeFileSync(city, "broken");
  await vi.waitFor(() => expect(faults).toHaveLength(1));
  expect(geo.lookUp("192.0.2.1")["country"]).toBe("SE");
});

it("refuses a file that is not a database", async () => {
  const { city } = writeGeoFiles();
  await expect(open({ city: `${city}.none` })).rejects.toThrow(/city\.mmdb\.none cannot be used .* ENOENT/);
  writeFileSync(city, "not a database");
  await expect(open({ city })).rejects.toThrow(GeoError);
});
