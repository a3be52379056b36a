import { createHmac } from "node:crypto";
import type { AssetOwner } from "./asset.ts";
import { assetErrors } from "./errors.ts";
import { assetLimits } from "./limits.ts";

/** The scope of a token: uploading the files of one manifest, for one script of one account. */
export interface UploadClaims extends AssetOwner {
  manifestId: string;
}

type Purpose = "asset-upload" | "asset-completion";

/** Signs and verifies the tokens of uploads, which are bound to a script and a manifest. */
export class UploadTokens {
  readonly #key: Uint8Array;

  constructor(secret: string) {
    this.#key = createHmac("sha256", secret).update("asset upload tokens").digest();
  }

  async sign(purpose: Purpose, claims: UploadClaims): Promise<string> {
    const { SignJWT } = await import("jose");
    const seconds = purpose === "asset-upload" ? assetLimits.sessionSeconds : assetLimits.completionSeconds;
    return new SignJWT({
      account: claims.accountId,
      ...(claims.namespaceId === undefined ? {} : { namespace: claims.namespaceId }),
      script: claims.scriptName,
      ...(claims.scriptId === undefined ? {} : { id: claims.scriptId }),
      manifest: claims.manifestId,
    })
      .setProtectedHeader({ alg: "HS256", typ: "JWT" })
      .setAudience(purpose)
      .setIssuedAt()
      .setExpirationTime(`${seconds}s`)
      .sign(this.#key);
  }

  async verify(purpose: Purpose, token: string): Promise<UploadClaims> {
    const { jwtVerify, errors } = await import("jose");
    const fault = purpose === "asset-upload" ? assetErrors.badToken : assetErrors.completion;
    try {
      const { payload } = await jwtVerify(token, this.#key, { algorithms: ["HS256"], audience: purpose });
      const { account, namespace, script, id, manifest } = payload as Record<string, string | undefined>;
      return {
        accountId: account!,
        namespaceId: namespace,
        scriptName: script!,
        scriptId: id,
        manifestId: manifest!,
      };
    } catch (error) {
      if (error instanceof errors.JWTExpired) throw fault("it has expired. Begin a new upload session");
      if (error instanceof errors.JOSEError) throw fault("it was not issued for this step");
      throw error;
    }
  }
}
