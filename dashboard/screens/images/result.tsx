import { useSearch } from "../../core/router.ts";
import { bytes, duration } from "../../core/format.ts";
import { Figure } from "../../parts/layout.tsx";
import { Comparison } from "./comparison.tsx";
import { fromApi, fromEdgeAgain, useDelivered, type Delivered } from "./delivered.ts";
import { FormatTable } from "./format-table.tsx";
import { baseOf, imagePath, nameOf, type Image } from "./image.ts";
import { setOptions, useOptions, useVariants } from "./option-fields.tsx";
import { optionsText } from "./options.ts";
import { PrivateAddress, usePrivateAddress } from "./private-address.tsx";
import { Written } from "./written.tsx";

const formatOf = (type: string): string => type.replace("image/", "");

/** Why the picture has another format than the original. */
const formatNote = (before: string, after: string, isAsked: boolean): string =>
  before === after
    ? "as the original"
    : `the original is ${formatOf(before)}; ${isAsked ? "the options ask for" : "this browser shows"} ${formatOf(after)}`;

/** The picture that the edge delivers, compared with the original. */
export function Result({ account, image }: { account: string; image: Image }) {
  const base = baseOf(image);
  const [variant] = useSearch("variant");
  const variants = useVariants(account);
  const values = useOptions();
  const options = optionsText(values);
  const text = variant || options || "public";
  const url = `${base}${text}`;
  const isSigned = image.requireSignedURLs && variants[text]?.neverRequireSignedURLs !== true;
  const address = usePrivateAddress(account, isSigned, url);
  const before = useDelivered(`${imagePath(account, image.id)}/blob`, fromApi);
  const after = useDelivered(address.url, fromEdgeAgain);
  const isAsked = variant === "" && !["", "auto"].includes(values["format"] ?? "");
  const fault = after.fault ?? before.fault;
  return (
    <div class="stack">
      {fault !== undefined && (
        <p class="form-failure" role="alert">
          {fault}
        </p>
      )}
      <Figures before={before.shown} after={after.shown} isAsked={isAsked} />
      {after.shown && before.shown ? (
        <Comparison
          name={nameOf(image)}
          before={before.shown}
          after={after.shown}
          text={text}
          options={variant === "" ? values : {}}
        />
      ) : (
        <figure class="picture">
          {after.shown && <img src={after.shown.url} alt={`${nameOf(image)} with ${text}`} />}
        </figure>
      )}
      {isSigned && <PrivateAddress address={address} />}
      <Written account={account} base={base} url={url} options={values} after={after.shown} />
      {variant === "" && before.shown && (
        <Focus url={before.shown.url} onChoose={(point) => setOptions({ ...values, gravity: point })} />
      )}
      {variant === "" && (
        <FormatTable
          key={optionsText({ ...values, format: "", quality: "" })}
          base={base}
          options={values}
          original={before.shown?.size}
          sign={address.sign}
        />
      )}
    </div>
  );
}

interface FiguresProps {
  before: Delivered | undefined;
  after: Delivered | undefined;
  isAsked: boolean;
}

const Figures = ({ before, after, isAsked }: FiguresProps) => (
  <div class="figures">
    <Figure
      name="Size"
      value={after === undefined ? "–" : bytes(after.size)}
      note={
        before &&
        after &&
        `${Math.round((after.size / before.size) * 100)} % of the original’s ${bytes(before.size)}`
      }
    />
    <Figure
      name="Pixels"
      value={after === undefined ? "–" : `${after.width} × ${after.height}`}
      note={before && `of ${before.width} × ${before.height}`}
    />
    <Figure
      name="Format"
      value={after === undefined ? "–" : formatOf(after.type)}
      note={before && after && formatNote(before.type, after.type, isAsked)}
    />
    <Figure name="Time" value={after === undefined ? "–" : duration(after.ms)} note={timeNote(after)} />
  </div>
);

/** The parts of the time. Without times of the edge, it has the way to this browser. */
function timeNote(after: Delivered | undefined): string {
  if (after?.times === undefined) return "with the way to this browser";
  const { made } = after.times;
  return made === undefined
    ? "from the cache of the edge, or the original"
    : `${duration(made.workedMs)} to make it, after ${duration(made.queuedMs)} in the queue`;
}

/** The original, of which a click chooses the point that a crop keeps. A key chooses the middle. */
const Focus = ({ url, onChoose }: { url: string; onChoose: (point: string) => void }) => (
  <div class="comparison">
    <button
      type="button"
      class="focus-picture"
      onClick={({ currentTarget, clientX, clientY, detail }) => {
        const { left, top, width, height } = currentTarget.getBoundingClientRect();
        const [x, y] = detail === 0 ? [0.5, 0.5] : [(clientX - left) / width, (clientY - top) / height];
        onChoose(`${x.toFixed(2)}x${y.toFixed(2)}`);
      }}
    >
      <img src={url} alt="The original: a click sets the gravity to its point" />
    </button>
    <p class="hint">A click on the original sets the gravity: the point that a crop keeps.</p>
  </div>
);
