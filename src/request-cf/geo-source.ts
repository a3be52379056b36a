/** What is known of the place and the network of an address, in the properties of `request.cf`. */
export type GeoFacts = Readonly<Record<string, string | number>>;

export interface GeoSource {
  lookUp(address: string): GeoFacts;
  close(): void;
}

export const noGeo: GeoSource = { lookUp: () => ({}), close: () => {} };
