import { useGet } from "../../core/cache.ts";
import { count, plural } from "../../core/format.ts";
import { Confirm } from "../../parts/confirm.tsx";
import { Bars, Failure } from "../../parts/states.tsx";
import { one, type Customer } from "./namespace.ts";
import { Dialog } from "../../parts/dialog.tsx";

/** Scripts that one call deletes at most. */
const deletedMax = 1000;
const shownMax = 100;

interface DeleteTaggedProps {
  place: Readonly<Record<string, string>>;
  path: string;
  filter: string;
  onDone: () => void;
  onClose: () => void;
}

/** Deletes the customers with tags: shows whom it hits, and asks for their number. */
export function DeleteTagged({ place, path, filter, onDone, onClose }: DeleteTaggedProps) {
  const hit = useGet<Customer[]>(
    `${path}/scripts?tags=${encodeURIComponent(filter)}&page=1&per_page=${deletedMax}`,
  );
  const title = "Delete customers by tag";
  if (hit.data === undefined)
    return (
      <Dialog title={title} onClose={onClose}>
        {hit.failure ? <Failure failure={hit.failure} onRetry={hit.reload} /> : <Bars />}
      </Dialog>
    );
  const total = hit.info.total_count ?? hit.data.length;
  return (
    <Confirm
      title={title}
      submit="Delete"
      typed={String(Math.min(total, deletedMax))}
      call={{ op: `DELETE ${one}/scripts`, params: place, query: { tags: filter, limit: deletedMax } }}
      done="The customers were deleted"
      invalidates={[path]}
      onDone={onDone}
      onClose={onClose}
    >
      <p>
        {plural(total, "customer")} match <code>{filter}</code>
        {total > deletedMax && `. The first ${count(deletedMax)} are deleted`}:
      </p>
      <ul class="choices">
        {hit.data.slice(0, shownMax).map(({ script }) => (
          <li key={script.id}>{script.id}</li>
        ))}
        {hit.data.length > shownMax && <li>and {count(hit.data.length - shownMax)} more</li>}
      </ul>
    </Confirm>
  );
}
