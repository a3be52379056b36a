import { z } from "zod";
import { routeWithBody, type ControlRoute } from "../control.ts";
import { TestFault } from "../test-fault.ts";
import { OutboundAnswerSchema, OutboundModeSchema, type TestedOutbound } from "./outbound.ts";

/** The routes of requests that leave the platform. */
export const outboundRoutes = (outbound: TestedOutbound): ControlRoute[] => [
  routeWithBody({
    method: "PUT",
    path: "/outbound",
    summary: "Sets which requests beyond this machine are allowed",
    body: z.strictObject({ mode: OutboundModeSchema }),
    async handle(_request, { mode }) {
      outbound.mode = mode;
    },
  }),
  routeWithBody({
    method: "POST",
    path: "/outbound/answers",
    summary: "Adds an answer to requests that leave the platform",
    body: OutboundAnswerSchema,
    handle: async (_request, answer) => ({ id: outbound.add(answer) }),
  }),
  {
    method: "DELETE",
    path: "/outbound/answers/{id}",
    summary: "Removes an answer",
    async handle({ params }) {
      if (!outbound.remove(params["id"]!)) throw new TestFault(404, `No answer has the id ${params["id"]}`);
    },
  },
  {
    method: "GET",
    path: "/outbound/requests",
    summary: "Lists the requests that left the platform, or would have",
    handle: async () => ({ mode: outbound.mode, requests: outbound.requests }),
  },
];
