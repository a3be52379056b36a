// Everything that a request says of itself.
export default {
  async fetch(request) {
    const headers = new Headers(request.headers);
    headers.set("x-set", "1");
    headers.append("x-set", "2");
    headers.append("set-cookie", "a=1");
    headers.append("set-cookie", "b=2");
    headers.delete("x-drop");
    let isImmutable = false;
    try {
      request.headers.set("x-set", "1");
    } catch {
      isImmutable = true;
    }
    return Response.json({
      method: request.method,
      url: request.url,
      redirect: request.redirect,
      host: request.headers.get("host"),
      header: request.headers.get("x-drop"),
      has: [headers.has("x-drop"), headers.has("X-Set")],
      set: headers.get("x-set"),
      cookies: headers.getSetCookie(),
      hasBody: request.body instanceof ReadableStream,
      body: await request.text(),
      isImmutable,
      cf: request.cf,
    });
  },
};
