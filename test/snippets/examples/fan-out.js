// Asks three services at once, and answers with what they say together.
const api = "http://api.test";

export default {
  async fetch() {
    const names = ["prices", "stock", "reviews"];
    const answers = await Promise.all(
      names.map(async (name) => {
        const response = await fetch(`${api}/part?name=${name}`);
        return [name, response.ok ? await response.json() : null];
      }),
    );
    return Response.json(Object.fromEntries(answers));
  },
};
