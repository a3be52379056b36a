import { absentPart } from "../../../workers/runtime/worker/binding-object.ts";

/* The images binding of a script. */
type BindingFetch = (path: string, init?: RequestInit) => Promise<Response>;

type Data = ReadableStream<Uint8Array> | ArrayBuffer | ArrayBufferView | Blob | Response;
interface InputOptions {
  encoding?: "base64";
}
type Encoding = { encoding?: "base64" };
type Step = { transform: unknown } | { draw: Transformer; options: unknown };
/** An image by number, as the gateway parses it. */
interface Layer {
  image: number;
  steps: ({ transform: unknown } | { draw: Layer; options: unknown })[];
}

const utf8 = new TextEncoder();
const consumedCode = 9525;
/** Missing from the type library; workerd has it. */
const fromBase64 = (text: string): Uint8Array =>
  (Uint8Array as unknown as { fromBase64(text: string): Uint8Array }).fromBase64(text);

export function imagesBinding(call: BindingFetch, { name }: { name: string }): object {
  return {
    async info(data: Data, options?: InputOptions) {
      const response = await call("/info", { method: "POST", body: streamOf(data, options) });
      return response.json();
    },
    input: (data: Data, options?: InputOptions) => new Transformer(call, streamOf(data, options)),
    hosted: absentPart(`${name}.hosted`),
    text: absentPart(`${name}.text`),
  };
}

/** An image and its pending steps, which run when the output is requested. */
class Transformer {
  readonly #call: BindingFetch;
  readonly #stream: ReadableStream<Uint8Array>;
  readonly #steps: Step[] = [];
  #isConsumed = false;

  constructor(call: BindingFetch, stream: ReadableStream<Uint8Array>) {
    this.#call = call;
    this.#stream = stream;
  }

  transform(options: object): this {
    if (typeof options !== "object" || options === null)
      throw new TypeError(`Expected an object of options for transform but received ${typeof options}`);
    this.#steps.push({ transform: { ...options } });
    return this;
  }

  draw(image: Data | Transformer, options: object = {}): this {
    const draw = image instanceof Transformer ? image : new Transformer(this.#call, streamOf(image));
    this.#steps.push({ draw, options: { ...options } });
    return this;
  }

  async output(options: object = {}): Promise<Result> {
    const streams: ReadableStream<Uint8Array>[] = [];
    const order = JSON.stringify({ root: this.#layer(streams), output: { ...options } });
    const boundary = `images-${crypto.randomUUID()}`;
    const response = await this.#call("/transform", {
      method: "POST",
      headers: { "content-type": `multipart/form-data; boundary=${boundary}` },
      body: formOf(boundary, order, streams),
    });
    return new Result(response);
  }

  #layer(streams: ReadableStream<Uint8Array>[]): Layer {
    if (this.#isConsumed) throw failure(consumedCode, "The image has been used already: its bytes are gone");
    this.#isConsumed = true;
    const image = streams.push(this.#stream) - 1;
    return {
      image,
      steps: this.#steps.map((step) =>
        "draw" in step ? { draw: step.draw.#layer(streams), options: step.options } : step,
      ),
    };
  }
}

class Result {
  readonly #type: string;
  #body: ReadableStream<Uint8Array> | null;

  constructor(response: Response) {
    this.#type = response.headers.get("content-type") ?? "application/octet-stream";
    this.#body = response.body;
  }

  contentType(): string {
    return this.#type;
  }

  response(init: { headers?: HeadersInit } = {}): Response {
    const headers = new Headers(init.headers);
    headers.set("content-type", this.#type);
    return new Response(this.#take(), { headers });
  }

  image({ encoding }: Encoding = {}): ReadableStream<Uint8Array> {
    checkEncoding(encoding);
    const body = this.#take();
    return encoding === undefined ? body : body.pipeThrough(new TransformStream(base64Encoder()));
  }

  #take(): ReadableStream<Uint8Array> {
    const body = this.#body;
    if (body === null) throw failure(consumedCode, "The result has been used already: its bytes are gone");
    this.#body = null;
    return body;
  }
}

function failure(code: number, why: string): Error {
  const error = new Error(`IMAGES_TRANSFORM_ERROR ${code}: ${why}`);
  error.name = "ImagesError";
  return Object.assign(error, { code });
}

function checkEncoding(encoding: unknown): void {
  if (encoding !== undefined && encoding !== "base64")
    throw new TypeError(`Expected the encoding base64 but received ${JSON.stringify(encoding)}`);
}

function streamOf(data: Data, { encoding }: InputOptions = {}): ReadableStream<Uint8Array> {
  checkEncoding(encoding);
  const isKnown =
    data instanceof ReadableStream ||
    data instanceof ArrayBuffer ||
    ArrayBuffer.isView(data) ||
    data instanceof Blob;
  const body = isKnown ? new Response(data as BodyInit).body : data instanceof Response ? data.body : null;
  if (body === null)
    throw new TypeError(
      "Expected an image as a ReadableStream, ArrayBuffer, ArrayBufferView, Blob or Response",
    );
  return encoding === undefined ? body : body.pipeThrough(new TransformStream(base64Decoder()));
}

/** A multipart form with the order first, then the images as streams. */
function formOf(
  boundary: string,
  order: string,
  streams: readonly ReadableStream<Uint8Array>[],
): ReadableStream<Uint8Array> {
  const { readable, writable } = new IdentityTransformStream();
  const head = (name: string, file: string): Uint8Array =>
    utf8.encode(`--${boundary}\r\ncontent-disposition: form-data; name="${name}"${file}\r\n\r\n`);
  const write = async (bytes: Uint8Array): Promise<void> => {
    const writer = writable.getWriter();
    await writer.write(bytes);
    writer.releaseLock();
  };
  const writeAll = async (): Promise<void> => {
    await write(head("order", ""));
    await write(utf8.encode(`${order}\r\n`));
    for (const stream of streams) {
      await write(head("image", '; filename="image"'));
      await stream.pipeTo(writable, { preventClose: true });
      await write(utf8.encode("\r\n"));
    }
    await write(utf8.encode(`--${boundary}--\r\n`));
    await writable.close();
  };
  // The gateway may have refused the order and stopped reading; its response has the reason.
  writeAll()
    .catch((error: unknown) => writable.abort(error))
    .catch(() => {});
  return readable;
}

function base64Encoder(): Converter {
  let rest = new Uint8Array(0);
  const encode = (bytes: Uint8Array): Uint8Array =>
    utf8.encode((bytes as unknown as { toBase64(): string }).toBase64());
  return {
    transform(chunk, controller) {
      const all = new Uint8Array(rest.length + chunk.length);
      all.set(rest);
      all.set(chunk, rest.length);
      const whole = all.length - (all.length % 3);
      if (whole > 0) controller.enqueue(encode(all.subarray(0, whole)));
      rest = all.slice(whole);
    },
    flush(controller) {
      if (rest.length > 0) controller.enqueue(encode(rest));
    },
  };
}

function base64Decoder(): Converter {
  let rest = "";
  const text = new TextDecoder();
  return {
    transform(chunk, controller) {
      const all = rest + text.decode(chunk, { stream: true }).replaceAll(/\s/g, "");
      const whole = all.length - (all.length % 4);
      if (whole > 0) controller.enqueue(fromBase64(all.slice(0, whole)));
      rest = all.slice(whole);
    },
    flush(controller) {
      if (rest !== "") controller.enqueue(fromBase64(rest));
    },
  };
}

interface Converter {
  transform(chunk: Uint8Array, controller: TransformStreamDefaultController<Uint8Array>): void;
  flush(controller: TransformStreamDefaultController<Uint8Array>): void;
}
