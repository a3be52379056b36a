import { setTimeout as delay } from "node:timers/promises";
import { startHosting } from "../runtime/platform.ts";

/** Writers and a reader of a database, whose cell is killed again and again. */
const code = `
const writes = {
  one: (db, n) => db.prepare("insert into writes (writer, n, part) values ('one', ?, 0)").bind(n).run(),
  batch: (db, n) => db.batch([0, 1, 2].map((part) => db.prepare("insert into writes (writer, n, part) values ('batch', ?, ?)").bind(n, part))),
  // Takes so long that the cell is often killed meanwhile.
  long: (db, n) => db.prepare(\`insert into writes (writer, n, part) with recursive c(x) as (select 0 union all select x + 1 from c where x < 60000)
    select 'long', ?, 0 from c where x % 60001 = 0 limit 60001\`).bind(n).run(),
};
export default { async fetch(request, env) {
  const [, name, n] = new URL(request.url).pathname.split("/");
  try {
    if (name === "prepare") return Response.json(await env.DB.exec("create table writes (writer text, n integer, part integer)"));
    if (name === "read") return Response.json(await env.DB.prepare("select count(*) as n from writes").first());
    if (name === "all") return Response.json(await env.DB.prepare("select writer, n, count(*) as count, count(distinct part) as parts from writes group by 1, 2").all());
    return Response.json(await writes[name](env.DB, Number(n)));
  } catch (error) { return Response.json({ error: error.message }); }
} };`;

interface WriterReply {
  error?: string;
  results?: { writer: string; n: number; count: number; parts: number }[];
}
const rowsOf = { one: 1, batch: 3, long: 1 };
type Writer = keyof typeof rowsOf;

export interface Tally {
  rounds: number;
  acknowledged: number;
  /** Acknowledged writes that are missing, or of which a part is missing. */
  lost: number;
  /** Writes that are there twice. */
  doubled: number;
  /** Writes whose answer was lost, and of these the ones that are there. */
  unanswered: number;
  unansweredThere: number;
  /** Reads that were answered, and that were not. */
  reads: number;
  failedReads: number;
  errors: string[];
}

/** Kills the cell of a database `rounds` times while it is used, and counts what became of the writes. */
export async function killDatabaseCells(rounds: number): Promise<Tally> {
  const hosting = await startHosting();
  try {
    const { body } = await hosting.call("POST", `/accounts/${hosting.account}/d1/database`, {
      name: "killed",
    });
    const { uuid } = body.result as { uuid: string };
    await hosting.deploy("killed", { code, bindings: [{ type: "d1", name: "DB", id: uuid }] });
    const ask = async (path: string): Promise<WriterReply> =>
      JSON.parse((await hosting.ask("killed", path)).body) as WriterReply;
    await ask("/prepare");
    const over = new AbortController();
    const answers = {
      one: new Map<number, boolean>(),
      batch: new Map<number, boolean>(),
      long: new Map<number, boolean>(),
    };
    const errors = new Set<string>();
    const write = async (writer: Writer): Promise<void> => {
      for (let n = 0; !over.signal.aborted; n++) {
        const { error } = await ask(`/${writer}/${n}`);
        answers[writer].set(n, error === undefined);
        if (error !== undefined) errors.add(error);
      }
    };
    const reads = { answered: 0, failed: 0 };
    const read = async (): Promise<void> => {
      while (!over.signal.aborted) reads[(await ask("/read")).error === undefined ? "answered" : "failed"]++;
    };
    const running = [...(Object.keys(rowsOf) as Writer[]).map(write), read()];
    const acknowledgedOf = (writer: Writer): number => [...answers[writer].values()].filter(Boolean).length;
    for (let round = 1; round <= rounds; round++) {
      const [one, batch] = [acknowledgedOf("one"), acknowledgedOf("batch")];
      const hasWritten = (): boolean =>
        acknowledgedOf("one") > one + 1 && acknowledgedOf("batch") > batch + 1;
      for (const end = Date.now() + 20_000; !hasWritten(); await delay(5))
        if (Date.now() > end) throw new Error(`nothing was written in round ${round}`);
      for (const pid of hosting.services.objectCells.pids) process.kill(pid, "SIGKILL");
    }
    over.abort();
    await Promise.all(running);
    return tallyOf({ rounds, answers, reads, errors, found: (await ask("/all")).results! });
  } finally {
    await hosting.close(0);
  }
}

function tallyOf({
  rounds,
  answers,
  reads,
  errors,
  found,
}: {
  rounds: number;
  answers: Record<Writer, Map<number, boolean>>;
  reads: { answered: number; failed: number };
  errors: ReadonlySet<string>;
  found: NonNullable<WriterReply["results"]>;
}): Tally {
  const there = new Map(found.map((row) => [`${row.writer} ${row.n}`, row]));
  const tally = { rounds, acknowledged: 0, lost: 0, doubled: 0, unanswered: 0, unansweredThere: 0 };
  for (const [writer, all] of Object.entries(answers) as [Writer, Map<number, boolean>][])
    for (const [n, isAcknowledged] of all) {
      const row = there.get(`${writer} ${n}`);
      tally[isAcknowledged ? "acknowledged" : "unanswered"]++;
      const isPart = row !== undefined && row.parts < rowsOf[writer];
      if (isPart || (isAcknowledged && row === undefined)) tally.lost++;
      if (!isAcknowledged && row !== undefined) tally.unansweredThere++;
      if (row !== undefined && row.count > rowsOf[writer]) tally.doubled++;
    }
  return { ...tally, reads: reads.answered, failedReads: reads.failed, errors: [...errors] };
}
