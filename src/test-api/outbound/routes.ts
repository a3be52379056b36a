import { z } from "zod";
import type { ControlRoute } from "../control.ts";
import { TestFault } from "../test-fault.ts";
import { OutboundAnswerSchema, OutboundModeSchema, type TestedOutbound } from "./outbound.ts";

/** The routes of requests that leave the platform. */
export const outboundRoutes = (outbound: TestedOutbound): ControlRoute[] => [
  {
    method: "PUT",
    path: "/outbound",
    summary: "Sets which requests beyond this machine are allowed",
    async handle(request) {
      ({ mode: outbound.mode } = await request.body(z.strictObject({ mode: OutboundModeSchema })));
    },
  },
  {
    method: "POST",
    path: "/outbound/answers",
    summary: "Adds an answer to requests that leave the platform",
    handle: async (request) => ({ id: outbound.add(await request.body(OutboundAnswerSchema)) }),
  },
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
