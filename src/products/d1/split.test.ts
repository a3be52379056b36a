import { describe, expect, it } from "vitest";
import { fc } from "../../../test/helpers/properties.ts";
import { countParameters, splitStatements, StatementSplitter } from "./worker/split.ts";

const trigger = `CREATE TRIGGER t AFTER INSERT ON a BEGIN
  UPDATE a SET x = CASE WHEN x > 1 THEN 2 ELSE 3 END;
  DELETE FROM b;
END`;

describe("splitStatements", () => {
  it.each<[string, string[]]>([
    ["select 1; select 2", ["select 1", "select 2"]],
    ["select 1;;\n ;", ["select 1"]],
    ["select ';' , \"a;b\", `c;d`, [e;f]; select 2;", ["select ';' , \"a;b\", `c;d`, [e;f]", "select 2"]],
    ["select 'it''s; one';select 2", ["select 'it''s; one'", "select 2"]],
    ["-- first; line\nselect 1; /* a; b */ select 2", ["-- first; line\nselect 1", "/* a; b */ select 2"]],
    ["-- only a comment;", []],
    ["/* open; comment", []],
    [`${trigger}; select 1`, [trigger, "select 1"]],
    [
      "create temp trigger x begin select 1; end; select 2",
      ["create temp trigger x begin select 1; end", "select 2"],
    ],
    ["select 'unclosed; text", ["select 'unclosed; text"]],
    [
      "create\n\ttrigger x begin select 1;\n\n end ; select 2",
      ["create\n\ttrigger x begin select 1;\n\n end", "select 2"],
    ],
    ["select 5 - 3; select 6 / 2", ["select 5 - 3", "select 6 / 2"]],
    ["", []],
  ])("%s", (text, statements) => {
    expect(splitStatements(text)).toEqual(statements);
  });

  it("finds the same statements in any pieces of the text", () => {
    const part = fc.constantFrom(
      "a",
      ";",
      "'",
      '"',
      "`",
      "[",
      "]",
      "-",
      "--",
      "/*",
      "*/",
      "\n",
      " ",
      trigger,
      "end",
    );
    fc.assert(
      fc.property(
        fc.array(part, { maxLength: 30 }),
        fc.array(fc.nat(60), { maxLength: 6 }),
        (parts, cuts) => {
          const text = parts.join("");
          const at = [0, ...cuts.toSorted((a, b) => a - b), text.length];
          const splitter = new StatementSplitter();
          const found = at.slice(1).flatMap((end, i) => splitter.push(text.slice(at[i], end)));
          expect([...found, ...splitter.end()]).toEqual(splitStatements(text));
        },
      ),
    );
  });
});

it.each([
  ["select ?, ?", 2],
  ["select ?1, ?1, ?3", 3],
  ["select '?', \"?\", -- ?\n ?", 1],
  ["select :a, @b, $c, :a", 3],
  ["select 1", 0],
])("countParameters: %s", (sql, count) => {
  expect(countParameters(sql)).toBe(count);
});
