import { ApiError } from "../../control/api/errors.ts";

export const smartRoutingErrors = {
  notEditable: (why: string) =>
    new ApiError(403, 1015, `The setting smart_routing cannot be changed: ${why}`),
};
