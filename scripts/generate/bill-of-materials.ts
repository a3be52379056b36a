import { globSync, readFileSync } from "node:fs";
import { libraryLicenses } from "./library-licenses.ts";

/** An entry of package-lock.json. */
export interface Locked {
  version: string;
  license?: string;
  integrity?: string;
  dependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
  peerDependencies?: Record<string, string>;
  optional?: boolean;
}
interface Component {
  "bom-ref": string;
  type: "library" | "application";
  name: string;
  version: string;
  scope: "required" | "optional";
  licenses: { expression: string }[];
  purl?: string;
  hashes?: { alg: "SHA-512"; content: string }[];
  description?: string;
  components?: Component[];
}

export const lock = JSON.parse(readFileSync("package-lock.json", "utf8")) as {
  packages: Record<string, Locked>;
};
/** Packages that bring a program or a library which is not JavaScript. */
const programs: Record<string, string> = {
  node: "the Node that a clone runs on; the npm package and the image use the Node that is installed there",
  workerd: "the runtime of customers' code",
};

/**
 * The text of bom.cdx.json: every package that the program uses at run time, for every system, in CycloneDX 1.6. It is made
 * from package-lock.json, without times and hosts, so equal dependencies give an equal file. `npm sbom --omit=dev` leaves
 * out packages that a development dependency needs too, such as workerd.
 */
export function billOfMaterials(): string {
  const root = JSON.parse(readFileSync("package.json", "utf8")) as Locked & {
    name: string;
    description: string;
  };
  const paths = productionPaths();
  const components = [...paths].map(([path, isRequired]) => componentOf(path, isRequired));
  const bill = {
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    version: 1,
    metadata: {
      component: {
        "bom-ref": root.name,
        type: "application",
        name: root.name,
        version: root.version,
        description: root.description,
        licenses: [{ expression: root.license }],
      },
    },
    components: components.toSorted((a, b) => (a["bom-ref"] < b["bom-ref"] ? -1 : 1)),
    dependencies: [
      { ref: root.name, dependsOn: refsOf("") },
      ...[...paths.keys()].map((path) => ({ ref: refOf(path), dependsOn: refsOf(path) })),
    ].toSorted((a, b) => (a.ref < b.ref ? -1 : 1)),
  };
  return `${JSON.stringify(bill, null, 2)}\n`;
}

/** The paths in the lock file that are used at run time, each with whether every system needs it. */
export function productionPaths(): Map<string, boolean> {
  const found = new Map<string, boolean>();
  const queue = [{ path: "", isRequired: true }];
  for (const { path, isRequired } of queue) {
    const { dependencies = {}, optionalDependencies = {} } = lock.packages[path]!;
    for (const name of [...Object.keys(dependencies), ...Object.keys(optionalDependencies)]) {
      const to = resolve(path, name);
      // The registry may lack the package of another system.
      if (to === undefined) continue;
      const needed = isRequired && !(name in optionalDependencies);
      if (found.has(to) && (found.get(to) === true || !needed)) continue;
      found.set(to, needed);
      queue.push({ path: to, isRequired: needed });
    }
  }
  return found;
}

/** The folder in which a package finds another one, as Node searches: its own folder first, then in those around it. */
function resolve(from: string, name: string): string | undefined {
  for (let folder = from; ; folder = folder.replace(/\/?node_modules\/(@[^/]+\/)?[^/]+$/, "")) {
    const path = `${folder === "" ? "" : `${folder}/`}node_modules/${name}`;
    if (path in lock.packages) return path;
    if (folder === "") return undefined;
  }
}

export const nameOf = (path: string): string => path.replace(/^.*node_modules\//, "");
const refOf = (path: string): string => `${nameOf(path)}@${lock.packages[path]!.version}`;

function refsOf(path: string): string[] {
  const { dependencies = {}, optionalDependencies = {} } = lock.packages[path]!;
  const names = [...Object.keys(dependencies), ...Object.keys(optionalDependencies)];
  return [...new Set(names.flatMap((name) => resolve(path, name) ?? []).map(refOf))].toSorted();
}

function componentOf(path: string, isRequired: boolean): Component {
  const { version, license, integrity } = lock.packages[path]!;
  const name = nameOf(path);
  if (license === undefined) throw new Error(`Expected a license in package-lock.json for ${path}`);
  const [algorithm, digest = ""] = (integrity ?? "").split("-");
  const inside = name === "sharp" ? librariesOfSharp() : [];
  return {
    "bom-ref": refOf(path),
    type: name in programs ? "application" : "library",
    name,
    version,
    ...(name in programs ? { description: programs[name] } : {}),
    scope: isRequired ? "required" : "optional",
    licenses: [{ expression: license }],
    purl: `pkg:npm/${name.replace("@", "%40")}@${version}`,
    ...(algorithm === "sha512"
      ? { hashes: [{ alg: "SHA-512", content: Buffer.from(digest, "base64").toString("hex") }] }
      : {}),
    ...(inside.length > 0 ? { components: inside } : {}),
  };
}

/** The libraries inside the libvips packages of sharp, which have the same versions for every system. */
function librariesOfSharp(): Component[] {
  const [file] = globSync("node_modules/@img/sharp-libvips-*/versions.json");
  if (file === undefined) throw new Error("Expected the libraries of sharp to be installed. Run: npm ci");
  const versions = JSON.parse(readFileSync(file, "utf8")) as Record<string, string>;
  return Object.entries(versions).map(([name, version]) => {
    const license = libraryLicenses[name];
    if (license === undefined)
      throw new Error(
        `Expected the license of ${name} in library-licenses.ts: sharp's libraries have it now`,
      );
    return {
      "bom-ref": `sharp-libvips/${name}@${version}`,
      type: "library",
      name,
      version,
      scope: "optional",
      licenses: [{ expression: license }],
    };
  });
}
