import type { Storage, Write } from "../../../platform/storage/storage.ts";
import { newUuid } from "../../../platform/util/ids.ts";
import type { Author, Deployment, ScriptOwner, Script, VersionShare } from "../script.ts";
import type { Scripts } from "../scripts.ts";
import * as store from "./store-versions.ts";
import { scriptErrors, scriptNotFound } from "../errors.ts";
import { clock } from "../../../platform/timers/clock.ts";

const deploymentsKept = 100;

/** Records a deployment of a script's live versions. */
export async function deploy(
  trx: Write,
  script: Script,
  author: Author,
  annotations: Readonly<Record<string, string>>,
): Promise<Deployment> {
  const earlier = await store.deployments(trx, script.id);
  const deployment: Deployment = {
    id: newUuid(),
    scriptId: script.id,
    versions: script.live,
    source: author.client,
    authorEmail: author.email,
    annotations,
    // Deployments are ordered by time, so it must be later than the last one.
    createdOn: Math.max(clock.now(), (earlier[0]?.createdOn ?? 0) + 1),
  };
  await store.insertDeployment(trx, deployment);
  await store.removeDeployments(
    trx,
    earlier.slice(deploymentsKept - 1).map(({ id }) => id),
  );
  return deployment;
}

/** The deployments of accounts' scripts. */
export class Deployments {
  readonly #storage: Storage;
  readonly #scripts: Scripts;

  constructor(storage: Storage, scripts: Scripts) {
    this.#storage = storage;
    this.#scripts = scripts;
  }

  /** Newest first; the first one is live. */
  async list(script: Script): Promise<Deployment[]> {
    return store.deployments(this.#storage.read, script.id);
  }

  async get(script: Script, id: string): Promise<Deployment> {
    const found = (await this.list(script)).find((deployment) => deployment.id === id);
    if (found === undefined) throw scriptErrors.deploymentNotFound(id);
    return found;
  }

  /** Deploys one version, or two with their percentages. */
  async create(
    owner: ScriptOwner,
    name: string,
    shares: readonly VersionShare[],
    author: Author,
    annotations: Readonly<Record<string, string>>,
  ): Promise<Deployment> {
    return this.#scripts.change(owner, name, async (trx, current, save) => {
      if (current === undefined) throw scriptNotFound(owner, name);
      for (const { versionId } of shares) {
        const version = await store.find(trx, versionId);
        if (version?.scriptId !== current.id) throw scriptErrors.versionNotFound(versionId);
      }
      const script = { ...current, live: shares, modifiedOn: clock.now() };
      await save(script);
      return deploy(trx, script, author, annotations);
    });
  }

  async delete(script: Script, id: string): Promise<void> {
    const deployments = await this.list(script);
    if (!deployments.some((deployment) => deployment.id === id)) throw scriptErrors.deploymentNotFound(id);
    if (deployments[0]!.id === id) throw scriptErrors.deploymentIsLive();
    await this.#storage.write((trx) => store.removeDeployments(trx, [id]));
  }
}
