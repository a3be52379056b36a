import { Resolver } from "node:dns/promises";
import { call, ensureZone } from "../api.js";

/* Imports a zone file, and asks the name server for the records. NAME_SERVER is the address of `--dns-listen`. */
const { NAME_SERVER: nameServer = "127.0.0.1:8053" } = process.env;
const zoneFile = `
www   300 IN A     192.0.2.10
www   300 IN AAAA  2001:db8::10
docs  300 IN CNAME www.bakery.example.
@     300 IN MX    10 mail.bakery.example.
@     300 IN TXT   "v=spf1 mx -all"
`;

const zone = await ensureZone("bakery.example");
const form = new FormData();
form.set("file", new File([zoneFile], "bakery.example.txt"));
const { recs_added: added } = await call("POST", `/zones/${zone.id}/dns_records/import`, form);
console.log(`${added} records imported`);

// A change is answered by the name server as soon as the API has answered.
const resolver = new Resolver();
resolver.setServers([nameServer]);
console.log("docs A", await resolver.resolve4("docs.bakery.example"));
console.log("MX", await resolver.resolveMx("bakery.example"));
console.log("TXT", await resolver.resolveTxt("bakery.example"));
