import { useAsync } from "../../core/async.ts";
import { href } from "../../core/router.ts";
import { Card, State, Time } from "../../parts/layout.tsx";
import { Empty, Loaded } from "../../parts/states.tsx";
import { Table } from "../../parts/table.tsx";
import { partOf, type Entry } from "../account/audit/log.ts";
import { joined, nameOf, titleOf } from "../account/audit/words.ts";

const [days, changesMax] = [7, 5];
const dayMs = 86_400_000;

const readLast = async (account: string): Promise<Entry[]> => {
  const since = new Date(Date.now() - days * dayMs).toISOString();
  const query = { since, limit: changesMax, cursor: undefined, resource: "", withReads: false };
  return (await partOf("account", account, query)).entries;
};

/** The newest changes in the account. */
export function LastChanges({ account }: { account: string }) {
  const changes = useAsync(account, async () => readLast(account));
  const at = `/${account}/audit`;
  return (
    <Card title="Last changes" actions={<a href={href(at)}>Audit log</a>}>
      <Loaded
        of={changes}
        rows={changesMax}
        empty={<Empty icon="audit" title={`No change in the last ${days} days`} />}
      >
        {(list) => (
          <Table
            label="Last changes"
            rows={list}
            keyOf={({ id }) => id}
            columns={[
              {
                title: "What",
                isWide: true,
                cell: (entry) => (
                  <>
                    <a href={href(`${at}?entry=${entry.id}`)}>{titleOf(entry)}</a>
                    <br />
                    <small>{joined(nameOf(entry.resource), entry.zone?.name)}</small>
                  </>
                ),
              },
              { title: "When", cell: ({ action }) => <Time at={action.time} /> },
              {
                title: "Result",
                isExtra: true,
                cell: ({ action: { result } }) => (
                  <State tone={result === "success" ? "ok" : "bad"}>{result}</State>
                ),
              },
            ]}
          />
        )}
      </Loaded>
    </Card>
  );
}
