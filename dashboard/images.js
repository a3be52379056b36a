// A page to try transforms: builds a delivery URL from the chosen options, and shows the result with its size.
const api = new URL("/client/v4", location.href).href;
const $ = (id) => document.getElementById(id);
const form = $("options");

/** Options by name: a list of choices, or the bounds and the step of a number. */
const options = {
  width: { min: 1, max: 12000, value: 600 },
  height: { min: 1, max: 12000 },
  fit: ["", "scale-down", "contain", "scale-up", "cover", "crop", "aspect-crop", "pad", "squeeze"],
  gravity: ["", "auto", "face", "center", "left", "right", "top", "bottom", "entropy"],
  format: ["", "auto", "avif", "webp", "jpeg", "png", "gif"],
  quality: { min: 1, max: 100 },
  dpr: { min: 1, max: 3, step: 0.5 },
  rotate: ["", "90", "180", "270"],
  flip: ["", "h", "v", "hv"],
  background: { text: "a CSS colour" },
  blur: { min: 1, max: 250 },
  sharpen: { min: 0, max: 10, step: 0.5 },
  brightness: { min: 0, max: 2, step: 0.1 },
  contrast: { min: 0, max: 2, step: 0.1 },
  gamma: { min: 0, max: 2, step: 0.1 },
  saturation: { min: 0, max: 100, step: 0.1 },
  metadata: ["", "none", "copyright", "keep"],
  anim: ["", "true", "false"],
};

for (const [name, values] of Object.entries(options)) {
  const label = document.createElement("label");
  label.append(`${name} `);
  if (Array.isArray(values)) {
    const select = document.createElement("select");
    select.append(...values.map((value) => new Option(value, value)));
    select.name = name;
    label.append(select);
  } else {
    const { text, ...bounds } = values;
    const input = document.createElement("input");
    Object.assign(input, text === undefined ? { type: "number", ...bounds } : { placeholder: text }, {
      name,
    });
    label.append(input);
  }
  $("fields").append(label);
}

let token = sessionStorage.getItem("token");

async function call(path, init = {}) {
  const response = await fetch(`${api}${path}`, { ...init, headers: { authorization: `Bearer ${token}` } });
  const { success, result, errors } = await response.json();
  if (!success) throw new Error(errors.map(({ code, message }) => `${code}: ${message}`).join("\n"));
  return result;
}

/** An event handler that runs `work` and shows its error on the page. */
const attempt = (work) => (event) => {
  event?.preventDefault();
  $("fault").textContent = "";
  work(event).catch((error) => {
    $("fault").textContent = error.message;
  });
};

async function open() {
  const accounts = await call("/accounts");
  form.account.replaceChildren(...accounts.map(({ id, name }) => new Option(name, id)));
  sessionStorage.setItem("token", token);
  $("sign-in").hidden = true;
  document.querySelector("main").hidden = false;
  await list();
}

async function list(chosen) {
  const { images } = await call(`/accounts/${form.account.value}/images/v1?per_page=100`);
  // A variant's URL is the image's URL followed by the variant's name.
  form.image.replaceChildren(
    ...images.map(
      ({ id, filename, variants }) => new Option(`${filename} (${id})`, variants[0].replace(/[^/]*$/, "")),
    ),
  );
  const own = images.find(({ id }) => id === chosen);
  if (own !== undefined) form.image.value = own.variants[0].replace(/[^/]*$/, "");
  if (images.length === 0) throw new Error("This account has no images yet. Upload one.");
  await show();
}

async function show() {
  const chosen = Object.keys(options)
    .filter((name) => form[name].value !== "")
    .map((name) => `${name}=${encodeURIComponent(form[name].value)}`);
  const url = form.image.value + (chosen.join(",") || "public");
  $("url").textContent = url;
  const startedAt = performance.now();
  const response = await fetch(url, { headers: { accept: "image/avif,image/webp,*/*" } });
  if (!response.ok) throw new Error(await response.text());
  const blob = await response.blob();
  const tookMs = Math.round(performance.now() - startedAt);
  URL.revokeObjectURL($("picture").src);
  $("picture").src = URL.createObjectURL(blob);
  await $("picture").decode();
  const { naturalWidth, naturalHeight } = $("picture");
  $("size").textContent =
    `${naturalWidth} × ${naturalHeight}, ${blob.size.toLocaleString()} bytes, ${blob.type}, ${tookMs} ms`;
}

async function upload() {
  const body = new FormData();
  body.set("file", form.upload.files[0]);
  const { id } = await call(`/accounts/${form.account.value}/images/v1`, { method: "POST", body });
  form.upload.value = "";
  await list(id);
}

$("sign-in").addEventListener(
  "submit",
  attempt(async ({ target }) => {
    token = target.token.value.trim();
    await open();
  }),
);
form.addEventListener(
  "change",
  attempt(async ({ target }) => {
    if (target.name === "upload") await upload();
    else if (target.name === "account") await list();
    else await show();
  }),
);
form.addEventListener("submit", (event) => event.preventDefault());
if (token !== null) attempt(open)();
