/** Location and network of an address, as properties of `request.cf`. */
export type GeoProperties = Readonly<Record<string, string | number>>;

export interface GeoSource {
  lookUp(address: string): GeoProperties;
  close(): void;
}

export const noGeo: GeoSource = { lookUp: () => ({}), close: () => {} };
