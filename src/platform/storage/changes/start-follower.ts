import { connectionOf } from "../postgres.ts";
import { Feed, type FeedOptions } from "./feed.ts";
import { Follower, type FollowerParts } from "./follower.ts";

interface Options extends Omit<FollowerParts, "feed">, Pick<FeedOptions, "token" | "notify"> {
  url: string;
}

/** A follower with a connection of its own, at the current end of the log. It imports `pg`, which SQLite does not need. */
export async function startFollower({ url, token, notify, ...parts }: Options): Promise<Follower> {
  const feed = new Feed({
    connection: connectionOf(url),
    token,
    notify,
    onNotice: () => follower.notice(),
    onLost: () => follower.wake(),
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
