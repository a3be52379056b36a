import { useState } from "preact/hooks";
import { useGet } from "../../core/cache.ts";
import { useCursorRows } from "../../core/cursor.ts";
import { bytes, count } from "../../core/format.ts";
import { href, navigate } from "../../core/router.ts";
import { Button } from "../../parts/button.tsx";
import { Grid } from "../../parts/grid.tsx";
import { Page } from "../../parts/layout.tsx";
import { Empty, Loaded } from "../../parts/states.tsx";
import type { ScreenProps } from "../../shell/route.ts";
import { namespacesPath, type Namespace, type StoredObject } from "./namespace.ts";

const idPattern = /^[0-9a-f]{64}$/;

/** The objects of a namespace that have stored data, with their sizes. */
export default function Objects({ account, params }: ScreenProps) {
  const id = params["namespace"]!;
  const namespaces = useGet<Namespace[]>(`${namespacesPath(account)}?per_page=1000`);
  const namespace = namespaces.data?.find((each) => each.id === id);
  const rows = useCursorRows<StoredObject>(`${namespacesPath(account)}/${id}/objects?limit=1000`);
  const base = `/${account}/objects/${id}`;
  const [wanted, setWanted] = useState("");
  return (
    <Page
      title={namespace?.class ?? id}
      up={{ name: "Durable Objects", path: `/${account}/objects` }}
      about={
        namespace &&
        namespace.script !== "" && (
          <>
            Of the script{" "}
            <a href={href(`/${account}/scripts/${encodeURIComponent(namespace.script)}`)}>
              {namespace.script}
            </a>
          </>
        )
      }
    >
      <form
        class="toolbar"
        onSubmit={(event) => {
          event.preventDefault();
          if (idPattern.test(wanted)) navigate(`${base}/${wanted}`);
        }}
      >
        <input
          class="mono"
          aria-label="Id of an object"
          placeholder="Id of an object"
          data-filter=""
          spellcheck={false}
          value={wanted}
          onInput={(event) => setWanted(event.currentTarget.value.trim().toLowerCase())}
        />
        <Button
          type="submit"
          refusal={idPattern.test(wanted) ? undefined : "an id has 64 hexadecimal digits"}
        >
          Go to the object
        </Button>
        <Button icon="refresh" onPress={rows.first.reload}>
          Read again
        </Button>
      </form>
      <Loaded
        of={rows.first}
        empty={
          <Empty icon="objects" title="No object has stored data">
            <p>An object is in this list after its first write.</p>
          </Empty>
        }
      >
        {() => (
          <>
            <Grid
              label="Objects"
              rows={rows}
              keyOf={(row) => row.id}
              onOpen={(row) => navigate(`${base}/${row.id}`)}
              columns={[
                {
                  key: "name",
                  title: "Id",
                  width: "minmax(200px, 1fr)",
                  cell: (row) => (
                    <a href={href(`${base}/${row.id}`)}>
                      <code>{row.id}</code>
                    </a>
                  ),
                },
                {
                  key: "size",
                  title: "Stored",
                  width: "120px",
                  isNumber: true,
                  cell: ({ storedBytes }) => bytes(storedBytes),
                },
              ]}
            />
            <p class="faint">
              {count(rows.count)} objects{rows.hasMore && ", and more below"}
            </p>
          </>
        )}
      </Loaded>
    </Page>
  );
}
