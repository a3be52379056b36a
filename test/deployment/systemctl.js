// `systemctl` of a machine of machine.ts: starts the unit's ExecStart as systemd does, below $ROOT.
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";

const root = process.env.ROOT;
const pidFile = `${root}/pid`;
const [command, ...rest] = process.argv.slice(2);
const unitFile = `${root}/etc/systemd/system/selvedge.service`;
const settings = existsSync(unitFile) ? readFileSync(unitFile, "utf8") : "";
const valueOf = (name) => new RegExp(`^${name}=-?(.*)$`, "m").exec(settings)?.[1];
const below = (text) => text.replace(/(?<=^|\s)\/(etc|var)\//g, `${root}/$1/`);
const pid = () => (existsSync(pidFile) ? Number(readFileSync(pidFile, "utf8")) : undefined);

/** Lines NAME=value of a file, with quotes or without, as in systemd.exec(5). */
function environment() {
  const file = below(valueOf("EnvironmentFile") ?? "/none");
  if (!existsSync(file)) return {};
  const lines = readFileSync(file, "utf8").matchAll(/^([A-Z_]+)=(['"]?)(.*)\2$/gm);
  return Object.fromEntries([...lines].map(([, name, , value]) => [name, value]));
}

function start() {
  const folder = `${root}/var/lib/${valueOf("StateDirectory")}`;
  mkdirSync(folder, { recursive: true, mode: Number.parseInt(valueOf("StateDirectoryMode"), 8) });
  const journal = openSync(`${root}/journal`, "a");
  const [program, ...args] = below(valueOf("ExecStart")).split(" ");
  const { PATH, HOME } = process.env;
  // A service gets nothing of the caller's environment.
  const env = { PATH, HOME, ...environment() };
  const child = spawn(program, args, { cwd: "/", env, detached: true, stdio: ["ignore", journal, journal] });
  writeFileSync(pidFile, String(child.pid));
  child.unref();
}

async function stop() {
  const running = pid();
  if (running === undefined) return;
  process.kill(running, "SIGTERM");
  while (isRunning(running)) await delay(20);
  rmSync(pidFile);
}

/** A process that has ended stays as a zombie until its new parent collects it. */
function isRunning(of) {
  try {
    return !readFileSync(`/proc/${of}/stat`, "latin1").includes(") Z ");
  } catch {
    return false;
  }
}

if (command === "start" || (command === "enable" && rest.includes("--now"))) start();
else if (command === "stop") await stop();
else if (command === "restart") {
  await stop();
  start();
} else if (command !== "daemon-reload") throw new Error(`systemctl ${command} is not known here`);
