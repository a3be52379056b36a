import type { Logger } from "pino";
import type { Config } from "../../platform/config/settings.ts";
import { holdDns } from "../../platform/listen/held-dns.ts";
import type { PassedSockets } from "../../platform/listen/passed.ts";
import { Sockets } from "../../platform/listen/sockets.ts";
import { castLastNet } from "../../platform/observability/last-net.ts";
import { unawaited } from "../../platform/util/uncaught.ts";
import { NodeFolder } from "./node-folder.ts";
import { Supervisor } from "./supervisor.ts";

/** `serve` with edge processes: supervises the processes that run the platform until a signal. */
export async function supervise(
  config: Config,
  passed: PassedSockets,
  logger: Logger,
  notify: (state: string) => void,
): Promise<void> {
  castLastNet(logger, () => true);
  using sockets = await Sockets.bind(config, passed, "sockets");
  using dns = passed.has("dnsListen") ? undefined : await holdDns(config);
  const supervisor = new Supervisor(config, sockets, passed, dns, await NodeFolder.create(), logger);
  const stop = (signal: string): void => {
    logger.info({ signal }, "stopping");
    notify("STOPPING=1");
    unawaited(supervisor.stop());
  };
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => stop(signal));
  // The program that started this one has ended: bin/selvedge.js under an older Node.
  process.once("disconnect", () => stop("SIGTERM"));
  process.channel?.unref();
  process.on("SIGHUP", () => supervisor.signal("SIGHUP"));
  process.on("SIGUSR1", () => logger.info("SIGUSR1 is ignored"));
  process.on("SIGUSR2", () => unawaited(supervisor.replaceAll()));
  if (await supervisor.start()) notify("READY=1");
  process.exitCode = await supervisor.end();
}
