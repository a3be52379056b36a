import { z } from "zod";
import { DocumentSchema } from "../../src/cli/migration/document.ts";
import { products } from "../../src/cli/migration/products.ts";

/** The JSON Schema of the file of `selvedge import`, with the form of each product's values. */
export function importFileSchema(): string {
  const { resources, ...head } = DocumentSchema.shape;
  const schema = z.toJSONSchema(
    z.strictObject({
      ...head,
      resources: z.array(
        z.discriminatedUnion(
          "product",
          products.map(({ name, scope, schema: value }) =>
            resources.element.extend({
              product: z.literal(name),
              value: value.strict(),
              ...(scope === "zone" ? { zone: z.string() } : { zone: z.never().optional() }),
            }),
          ) as never,
        ),
      ),
    }),
    { io: "input", unrepresentable: "any" },
  );
  return `${JSON.stringify({ title: "The file of selvedge import", ...schema }, null, 2)}\n`;
}
