import type { Immutable } from "../../../platform/storage/columns.ts";

/** Certificates of zones with their keys, uploaded or of a pack. */
export interface CertificatesTable {
  id: Immutable<string>;
  zone_id: Immutable<string>;
  pack_id: Immutable<string | null>;
  type: string;
  bundle_method: string;
  priority: number;
  certificate: string;
  private_key: string;
  hosts: string;
  issuer: string;
  signature: string;
  expires_on: number;
  uploaded_on: number;
  modified_on: number;
}

/** Certificate packs: hosts for which the ACME authority issues. */
export interface CertificatePacksTable {
  id: Immutable<string>;
  zone_id: Immutable<string>;
  type: Immutable<"universal" | "advanced">;
  hosts: string;
  validation_method: "txt" | "http";
  certificate_authority: Immutable<string>;
  validity_days: Immutable<number>;
  attempts: number;
  next_on: number;
  error: string | null;
  created_on: Immutable<number>;
}
