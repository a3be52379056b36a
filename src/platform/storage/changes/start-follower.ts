import { randomUUID } from "node:crypto";
import { Client } from "pg";
import { connectionOf } from "../postgres.ts";
import { changesChannel } from "./change-log.ts";
import { Feed, type FeedOptions } from "./feed.ts";
import { Follower, type FollowerParts } from "./follower.ts";

interface Options extends Omit<FollowerParts, "feed">, Pick<FeedOptions, "token" | "notify" | "onReturned"> {
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
  const feed = new Feed({
    connection: connectionOf(url),
    token,
    notify,
    onNotice: () => follower.notice(),
    onLost: () => follower.wake(),
    ...(onReturned === undefined ? {} : { onReturned }),
  });
  const follower = new Follower({ feed, ...parts });
  try {
    await follower.start();
  } catch (error) {
    feed.close();
    throw error;
  }
  return follower;
}

/**
 * Whether a connection to a database receives notifications that another connection sends. It does not
 * through a pooler that gives each transaction another connection. Needs no tables.
 */
export async function notificationsArrive(url: string): Promise<boolean> {
  const connection = connectionOf(url);
  const sender = new Client(connection);
  sender.on("error", () => {});
  const feed = new Feed({
    connection,
    token: randomUUID(),
    notify: (payload) => sender.query("select pg_notify($1, $2)", [changesChannel, payload]),
    onNotice: () => {},
    onLost: () => {},
  });
  try {
    await sender.connect();
    return await feed.hears();
  } finally {
    feed.close();
    await sender.end();
  }
}
