import { isIP } from "node:net";
import { plainAddress } from "../origin/addresses.ts";
import type { EdgeRequest } from "./handlers.ts";

/**
 * Headers that proxies add. A request through a proxy may come from another machine, although the connection
 * is local.
 */
const proxyHeader =
  /^(?:forwarded|via|x-forwarded(?:-\w+)*|x-real-ip|x-client-ip|x-cluster-client-ip|x-original-\w+(?:-\w+)*|true-client-ip|cf-(?:connecting-ip|ray|visitor)|cdn-loop)$/;

/**
 * Whether a visitor is on this machine: decided by the address of the connection, which headers cannot forge.
 * Requests of scripts, of proxies, and in HTTP/1.0, which simple proxies use, do not count.
 */
export function isLocalVisitor({ request, clientAddress, via }: EdgeRequest): boolean {
  if (via !== undefined || request.httpVersion === "1.0" || !isLoopback(clientAddress)) return false;
  if (!isLoopback(request.socket.remoteAddress ?? "")) return false;
  return !Object.keys(request.headers).some((name) => proxyHeader.test(name));
}

function isLoopback(address: string): boolean {
  const plain = plainAddress(address);
  return plain === "::1" || (isIP(plain) === 4 && plain.startsWith("127."));
}
