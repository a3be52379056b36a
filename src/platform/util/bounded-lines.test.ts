import { PassThrough } from "node:stream";
import { fc } from "../../../test/helpers/properties.ts";
import { expect, it } from "vitest";
import { eachLine } from "./bounded-lines.ts";

it("returns the beginning of each line, however the text is split into chunks", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.string({ unit: fc.constantFrom("a", "b", "\n"), maxLength: 12 })),
      async (chunks) => {
        const stream = new PassThrough();
        const lines: string[] = [];
        eachLine(stream, 5, (line) => lines.push(line));
        for (const chunk of chunks) stream.write(chunk);
        await new Promise((resolve) => stream.on("end", resolve).end());
        const whole = chunks.join("").split("\n");
        if (whole.at(-1) === "") whole.pop();
        expect(lines).toEqual(whole.map((line) => line.slice(0, 5)));
      },
    ),
  );
});
