import { MalformedError } from "../gateway/cell-messages.ts";
import { tooManyQueued } from "./faults.ts";
import type { ObjectCellsOptions } from "./object-cells-options.ts";
import type { OpenCell } from "./open-cell.ts";
import type { ActingObject, StandingTokens } from "./standing.ts";

/** Concurrent bookmark requests of one cell: each may wait for the log, and write to the database. */
const questionsMax = 100;

/** Answers objects of a cell that act without a request, and their messages about themselves. */
export function answerActing(
  open: OpenCell,
  tokens: StandingTokens,
  options: Pick<ObjectCellsOptions, "alarm" | "bookmark" | "standing">,
  beforeStart: (object: ActingObject) => Promise<void>,
): void {
  const { gateway } = open.cell;
  let questions = 0;
  const counted = async (answer: () => Promise<string>): Promise<string> => {
    if (questions >= questionsMax) throw tooManyQueued();
    questions++;
    return answer().finally(() => questions--);
  };
  const actingOf = (token: string): ActingObject | undefined => {
    const object = tokens.read(token);
    return object !== undefined && open.namespaces.has(object.namespace) ? object : undefined;
  };
  gateway.standing = async (token) => {
    const object = actingOf(token);
    return object && options.standing(object);
  };
  gateway.objects.onMessage = async (token, message) => {
    const object = actingOf(token);
    if (object === undefined || open.cell.isDead)
      throw new MalformedError("This Durable Object does not run in this cell.");
    if (message.kind === "alarm") await options.alarm(object, message.notice);
    else if (message.kind === "start") await beforeStart(object);
    else return counted(async () => options.bookmark(object, message.order));
    return undefined;
  };
}
