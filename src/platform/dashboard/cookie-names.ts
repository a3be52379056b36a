/**
 * The cookies of the console's sessions. Browsers send them to every port of the host, so the edge removes both
 * from requests of visitors and from answers.
 */
export const sessionCookieNames = ["__Host-selvedge", "selvedge_session"] as const;
