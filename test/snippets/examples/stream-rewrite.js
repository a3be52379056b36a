// Changes a body of any size while it passes: each "@" becomes "#".
const [from, to] = new TextEncoder().encode("@#");

export default {
  async fetch(request) {
    const response = await fetch(request);
    const rewrite = new TransformStream({
      transform(chunk, controller) {
        for (let i = chunk.indexOf(from); i >= 0; i = chunk.indexOf(from, i + 1)) chunk[i] = to;
        controller.enqueue(chunk);
      },
    });
    return new Response(response.body.pipeThrough(rewrite), response);
  },
};
