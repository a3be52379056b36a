import { randomUUID } from "node:crypto";
import { Client } from "pg";
import { connectionOf } from "../postgres.ts";
import { changesChannel } from "./change-log.ts";
import { ChangeLogConnection, type ChangeLogConnectionOptions } from "./change-log-connection.ts";
import { Follower, type FollowerParts } from "./follower.ts";

interface Options
  extends
    Omit<FollowerParts, "connection">,
    Pick<ChangeLogConnectionOptions, "token" | "notify" | "onReturned"> {
  url: string;
}

/** A follower with a connection of its own, at the current end of the log. It imports `pg`, which SQLite does not need. */
export async function startFollower({
  url,
  token,
  notify,
  onReturned,
  ...parts
}: Options): Promise<Follower> {
  const connection = new ChangeLogConnection({
    connection: connectionOf(url),
    token,
    notify,
    onNotice: () => follower.notice(),
    onLost: () => follower.wake(),
    ...(onReturned === undefined ? {} : { onReturned }),
  });
  const follower = new Follower({ connection, ...parts });
  try {
    await follower.start();
  } catch (error) {
    connection.close();
    throw error;
  }
  return follower;
}

/**
 * Whether a connection to a database receives notifications that another connection sends. It does not
 * through a pooler that gives each transaction another connection. Needs no tables.
 */
export async function notificationsArrive(url: string): Promise<boolean> {
  const config = connectionOf(url);
  const sender = new Client(config);
  sender.on("error", () => {});
  const receiver = new ChangeLogConnection({
    connection: config,
    token: randomUUID(),
    notify: (payload) => sender.query("select pg_notify($1, $2)", [changesChannel, payload]),
    onNotice: () => {},
    onLost: () => {},
  });
  try {
    await sender.connect();
    return await receiver.receivesNotifications();
  } finally {
    receiver.close();
    await sender.end();
  }
}
