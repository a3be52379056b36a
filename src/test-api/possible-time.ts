/** The times that a platform under test can have. Signatures of DNS count seconds in 32 bits, which end in 2106. */
const earliestMs = Date.parse("2000-01-01T00:00:00Z");
const latestMs = Date.parse("2100-01-01T00:00:00Z");

export const isPossibleTime = (ms: number): boolean => ms >= earliestMs && ms <= latestMs;
export const possibleTimes = "a time from 2000-01-01 to 2100-01-01, such as 2026-01-31T12:00:00Z";
