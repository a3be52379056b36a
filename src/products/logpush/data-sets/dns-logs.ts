import type { LoggedQuery } from "../../../dns/name-server/query-log.ts";
import { writeTime, type DataSet } from "./data-set.ts";

/** The queries for names of a zone that the name server answered. */
export const dnsLogs = (colo: string): DataSet<LoggedQuery> => ({
  scope: "zone",
  descriptions: {
    ColoCode: "Location code of the node; string",
    QueryName: "Name of the query; string",
    QueryType: "Number of the query's type; int",
    ResponseCode: "Code of the answer; int",
    SourceIP: "Address of the resolver that asked; string",
    Timestamp: "When the query was received; int or string",
  },
  writers: (format) => ({
    ColoCode: () => JSON.stringify(colo),
    QueryName: ({ name }) => JSON.stringify(name),
    QueryType: ({ type }) => String(type),
    ResponseCode: ({ rcode }) => String(rcode),
    SourceIP: ({ address }) => JSON.stringify(address),
    Timestamp: ({ timeMs }) => writeTime[format](timeMs),
  }),
});
