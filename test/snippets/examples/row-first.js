// The first of two in a row: says who the visitor is.
export default {
  async fetch(request) {
    const known = new Request(request);
    known.headers.append("x-seen-by", "first");
    const response = await fetch(known);
    const answer = new Response(response.body, response);
    answer.headers.append("x-answered-by", "first");
    return answer;
  },
};
