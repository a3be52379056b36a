/** A field with its values before and after a change. Undefined: it was not there. */
export interface ChangedField {
  path: string;
  before: string | undefined;
  after: string | undefined;
}

/** Before and after of a change, field by field. */
export const ChangesTable = ({ fields }: { fields: readonly ChangedField[] }) => (
  <div class="table-frame" tabIndex={0} role="region" aria-label="Changed fields">
    <table class="changes">
      <thead>
        <tr>
          <th scope="col">Field</th>
          <th scope="col">Before</th>
          <th scope="col">After</th>
        </tr>
      </thead>
      <tbody>
        {fields.map(({ path, before, after }) => (
          <tr key={path}>
            <td>
              <code>{path}</code>
            </td>
            <td>{before === undefined ? "–" : <del>{before}</del>}</td>
            <td>{after === undefined ? "–" : <ins>{after}</ins>}</td>
          </tr>
        ))}
      </tbody>
    </table>
  </div>
);
