import type { DomainError } from "../../../platform/domain-error.ts";
import type { ProcessCalls } from "../../../platform/process-calls/calls.ts";
import { asciiJson } from "../../../platform/util/ascii-json.ts";
import { ObjectRefusal } from "../../../sandbox/errors.ts";
import { failing } from "../../call-failures.ts";
import type { OwnedObjects } from "./owned-objects.ts";
import type { FromNode } from "./passed-calls.ts";

/** The details of work on objects of a namespace. They are JSON, and so is the result. */
export interface NamespaceWork {
  namespace: string;
}

/** Does work on objects at the nodes that have them; here, unless nodes divide the objects. */
export class AtOwner {
  readonly #owned: OwnedObjects | undefined;
  readonly #calls: ProcessCalls | undefined;

  constructor(owned: OwnedObjects | undefined, calls: ProcessCalls | undefined) {
    this.#owned = owned;
    this.#calls = calls;
  }

  /** Work of a name, which all nodes declare. Other nodes have checked that the caller may do it. */
  work<Details extends NamespaceWork, Result>(
    name: string,
    work: (details: Details) => Promise<Result>,
  ): (details: Details) => Promise<Result> {
    const owned = this.#owned;
    if (owned === undefined) return work;
    this.#calls?.serve<Details & FromNode>(name, async (details, { response }) => {
      const answer = async (): Promise<Result> => {
        await owned.takesOver(details);
        return owned.here(details.namespace, async () => work(details));
      };
      const text = asciiJson(await failing(answer()));
      response.writeHead(200, { "content-length": text.length }).end(text);
    });
    return async (details) =>
      owned.at(details.namespace, async (node) =>
        node === undefined ? work(details) : node.ask<Result>(name, details),
      );
  }
}

/** Awaits work at an owner for a caller of the API, who gets `shown` if no process can have the objects now. */
export async function reached<Result>(
  work: Promise<Result>,
  shown: (message: string) => DomainError,
): Promise<Result> {
  try {
    return await work;
  } catch (error) {
    throw error instanceof ObjectRefusal && error.flags.length > 0 ? shown(error.message) : error;
  }
}
