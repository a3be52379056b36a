import { useEffect, useRef, useState } from "preact/hooks";
import { bytes, duration } from "../../core/format.ts";
import { Button } from "../../parts/button.tsx";
import { Card } from "../../parts/layout.tsx";
import { Table } from "../../parts/table.tsx";
import { fromEdgeAgain, measured, type Delivered } from "./delivered.ts";
import { setOptions } from "./option-fields.tsx";
import { optionsText, type Options } from "./options.ts";

const formats = ["avif", "webp", "jpeg"] as const;
const qualities = ["50", "70", "90"] as const;
const all = formats.flatMap((format) => qualities.map((quality) => ({ format, quality })));

type Choice = { format: string; quality: string };
type Cell = Pick<Delivered, "size" | "times" | "type"> | { fault: string };

const nameOf = ({ format, quality }: Choice): string => `${format} ${quality}`;

interface FormatTableProps {
  base: string;
  options: Options;
  /** The size of the original in bytes. */
  original: number | undefined;
  sign: (url: string) => Promise<string>;
}

/** The same picture in three formats and qualities, made one after the other when a person asks. */
export function FormatTable({ base, options, original, sign }: FormatTableProps) {
  const [cells, setCells] = useState<ReadonlyMap<string, Cell>>(new Map());
  const [running, setRunning] = useState<AbortController | undefined>(undefined);
  const run = useRef<AbortController>(undefined);
  useEffect(() => () => run.current?.abort(), []);
  const make = async (): Promise<void> => {
    const controller = (run.current = new AbortController());
    setRunning(controller);
    setCells(new Map());
    for (const choice of all) {
      const url = await sign(`${base}${optionsText({ ...options, ...choice })}`);
      const cell = await cellOf(url, controller.signal);
      if (controller.signal.aborted) break;
      setCells((before) => new Map(before).set(nameOf(choice), cell));
    }
    setRunning(undefined);
  };
  return (
    <Card
      title="Formats and qualities"
      actions={
        running === undefined ? (
          <Button onPress={() => void make()}>Make {all.length} pictures</Button>
        ) : (
          <Button onPress={() => running.abort()}>Stop</Button>
        )
      }
    >
      <div class="stack">
        <p class="hint" role="status">
          {running !== undefined
            ? `${cells.size} of ${all.length}`
            : cells.size === 0
              ? "The sizes of this picture as AVIF, WebP and JPEG. Each is made by the edge, one after the other."
              : "A press on a size chooses its format and quality."}
        </p>
        {cells.size > 0 && (
          <Table
            label="Formats and qualities"
            rows={formats}
            keyOf={(format) => format}
            columns={[
              { title: "Format", cell: (format) => format },
              ...qualities.map((quality) => ({
                title: `Quality ${quality}`,
                cell: (format: string) => (
                  <CellOf
                    cell={cells.get(nameOf({ format, quality }))}
                    choice={{ format, quality }}
                    original={original}
                    options={options}
                  />
                ),
              })),
            ]}
          />
        )}
      </div>
    </Card>
  );
}

async function cellOf(url: string, signal: AbortSignal): Promise<Cell> {
  try {
    const made = await measured(async () => fromEdgeAgain(url, signal), url);
    URL.revokeObjectURL(made.url);
    return made;
  } catch (error) {
    return { fault: (error as Error).message };
  }
}

interface CellProps {
  cell: Cell | undefined;
  choice: Choice;
  original: number | undefined;
  options: Options;
}

function CellOf({ cell, choice, original, options }: CellProps) {
  if (cell === undefined) return "–";
  if ("fault" in cell) return <small class="error">{cell.fault}</small>;
  const isChosen = options["format"] === choice.format && options["quality"] === choice.quality;
  const share = original === undefined ? undefined : `${Math.round((cell.size / original) * 100)} %`;
  const made = cell.times?.made;
  const work = made === undefined ? cell.times && "cached" : duration(made.workedMs);
  const other = cell.type === `image/${choice.format}` ? undefined : cell.type.replace("image/", "as ");
  return (
    <span class="format-cell">
      <Button
        label={`${bytes(cell.size)}: take ${choice.format} with quality ${choice.quality}`}
        isPressed={isChosen}
        onPress={() => setOptions({ ...options, ...choice })}
      >
        {bytes(cell.size)}
      </Button>
      <small>{[share, work, other].filter(Boolean).join(" · ")}</small>
    </span>
  );
}
