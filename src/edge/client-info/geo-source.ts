/** Location and network of an address, as properties of `request.cf`. */
export type GeoProperties = Readonly<Record<string, string | number>>;

export interface GeoSource {
  lookUp(address: string): GeoProperties;
  /** Reads the files again. */
  reload(): Promise<void>;
  close(): void;
}

export const noGeo: GeoSource = { lookUp: () => ({}), reload: async () => {}, close: () => {} };
