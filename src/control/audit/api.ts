import { together } from "../api/together.ts";
import { auditLogOperations } from "./api-v1.ts";
import { auditOperationsV2 } from "./api-v2.ts";

export const auditOperations = together([...auditLogOperations, ...auditOperationsV2]);
