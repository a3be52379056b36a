// Adds headers that protect browsers, and removes headers that describe the server.
const add = {
  "content-security-policy": "default-src 'self'",
  "strict-transport-security": "max-age=31536000",
  "x-content-type-options": "nosniff",
  "referrer-policy": "same-origin",
};
const remove = ["x-powered-by", "server"];

export default {
  async fetch(request) {
    const response = await fetch(request);
    const answer = new Response(response.body, response);
    for (const [name, value] of Object.entries(add)) answer.headers.set(name, value);
    for (const name of remove) answer.headers.delete(name);
    return answer;
  },
};
