import { DurableObject } from "cloudflare:workers";

/** The seats of one show. All requests for a show reach the same object, so no seat is sold twice. */
export class Show extends DurableObject {
  constructor(ctx, env) {
    super(ctx, env);
    ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS seats (seat TEXT PRIMARY KEY, guest TEXT NOT NULL)");
  }

  /** Returns the guest who has the seat. */
  reserve(seat, guest) {
    const { sql } = this.ctx.storage;
    sql.exec("INSERT INTO seats (seat, guest) VALUES (?, ?) ON CONFLICT DO NOTHING", seat, guest);
    return sql.exec("SELECT guest FROM seats WHERE seat = ?", seat).one().guest;
  }
}

/** PUT /SHOW/SEAT?guest=NAME reserves a seat: 200, or 409 if another guest has it. */
export default {
  async fetch(request, env) {
    const { pathname, searchParams } = new URL(request.url);
    const [, show, seat] = pathname.split("/");
    const guest = searchParams.get("guest");
    if (request.method !== "PUT" || !seat || !guest) return new Response(null, { status: 400 });
    const holder = await env.SHOWS.getByName(show).reserve(seat, guest);
    return new Response(`${seat} is reserved for ${holder}\n`, { status: holder === guest ? 200 : 409 });
  },
};
