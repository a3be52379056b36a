import type { ErrorCodes } from "../../../control/api/errors.ts";
import type { WorkflowError, workflowErrors } from "../errors.ts";

export const workflowErrorCodes: ErrorCodes<typeof workflowErrors> = {
  "workflows.workflowNotFound": [404, 10200],
  "workflows.versionNotFound": [404, 10201],
  "workflows.noScript": [400, 10202],
  "workflows.instanceNotFound": [404, 10400],
  "workflows.alreadyExists": [409, 10405],
  "workflows.duplicateInBatch": [409, 10415],
  "workflows.invalidId": [400, 10410],
  "workflows.cannotPause": [409, 10401],
  "workflows.cannotResume": [409, 10401],
  "workflows.cannotTerminate": [409, 10401],
  "workflows.cannotRestart": [409, 10401],
  "workflows.inFiniteState": [409, 10402],
  "workflows.stepNotFound": [404, 10403],
  "workflows.queueFull": [429, 10429],
  "workflows.tooManyCreated": [429, 10429],
  "workflows.storageFault": [503, 10503],
  "workflows.diskFull": [507, 10507],
  "workflows.moved": [503, 10504],
  "workflows.invalid": [400, 9207],
};

/** The public code of an error. */
export const codeOf = ({ kind }: WorkflowError): number => (workflowErrorCodes as ErrorCodes)[kind]![1];
