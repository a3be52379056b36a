/** Whether SQL text is one statement that certainly only reads. Some reading texts are not recognized. */
export const isRead = (sql: unknown): boolean =>
  typeof sql === "string" &&
  /^\s*(?:select|values|with)\b/i.test(sql) &&
  !/;\s*\S|\b(?:insert|update|delete|replace)\b/i.test(sql);
