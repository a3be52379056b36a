import { useRows } from "../../core/pages.ts";
import { href, navigate } from "../../core/router.ts";
import { Grid } from "../../parts/grid.tsx";
import { Page } from "../../parts/layout.tsx";
import { Empty, Loaded } from "../../parts/states.tsx";
import type { ScreenProps } from "../../shell/route.ts";
import { namespacesPath, type Namespace } from "./namespace.ts";

/** The namespaces of Durable Objects of the account's scripts and its customers' scripts. */
export default function Namespaces({ account }: ScreenProps) {
  const rows = useRows<Namespace>(namespacesPath(account), 100);
  return (
    <Page title="Durable Objects" about="Each class that a script exports and binds has a namespace.">
      <Loaded
        of={rows.first}
        empty={
          <Empty icon="objects" title="No namespace yet">
            <p>
              A script with a class of Durable Objects makes one when it is deployed: a migration with{" "}
              <code>new_sqlite_classes</code> in its configuration.
            </p>
          </Empty>
        }
      >
        {() => (
          <Grid
            label="Namespaces"
            rows={rows}
            keyOf={({ id }) => id}
            onOpen={({ id }) => navigate(`/${account}/objects/${id}`)}
            columns={[
              {
                key: "name",
                title: "Class",
                width: "minmax(140px, 1fr)",
                cell: (row) => <a href={href(`/${account}/objects/${row.id}`)}>{row.class}</a>,
              },
              { key: "script", title: "Script", width: "minmax(120px, 1fr)", cell: ({ script }) => script },
              {
                key: "storage",
                title: "Storage",
                width: "110px",
                isExtra: true,
                cell: (row) => (row.use_sqlite ? "SQLite" : "key-value"),
              },
              {
                key: "id",
                title: "Id",
                width: "minmax(140px, 2fr)",
                isExtra: true,
                cell: ({ id }) => <code>{id}</code>,
              },
            ]}
          />
        )}
      </Loaded>
    </Page>
  );
}
