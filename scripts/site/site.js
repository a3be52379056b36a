// The search of the site. The index is loaded with the first letter.
const root = document.documentElement.dataset.root;
const input = document.querySelector("search input");
const list = document.querySelector("search ol");
const resultsMax = 12;
let loading;

/** Loads the index as a script, because pages opened from a disk may not fetch. */
function index() {
  loading ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = `${root}search-index.js`;
    script.addEventListener("load", () => {
      const { documents, options } = globalThis.selvedgeSearch;
      const found = new MiniSearch(options);
      found.addAll(documents);
      resolve(found);
    });
    script.addEventListener("error", reject);
    document.head.append(script);
  });
  return loading;
}

async function search() {
  const query = input.value.trim();
  if (query === "") return void (list.hidden = true);
  const results = (await index()).search(query).slice(0, resultsMax);
  if (input.value.trim() !== query) return;
  const items = results.map(({ address, title, heading, text }) => {
    const item = document.createElement("li");
    const link = document.createElement("a");
    const excerpt = document.createElement("small");
    link.href = root + address;
    link.textContent = heading === title ? title : `${title}: ${heading}`;
    excerpt.textContent = text.slice(0, 120);
    link.append(excerpt);
    item.append(link);
    return item;
  });
  if (items.length === 0) {
    const none = document.createElement("li");
    none.textContent = "Nothing found";
    items.push(none);
  }
  list.replaceChildren(...items);
  list.hidden = false;
}

input.addEventListener("input", () => {
  search().catch(() => (list.hidden = true));
});
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && document.activeElement !== input) {
    event.preventDefault();
    input.focus();
  }
  if (event.key === "Escape") list.hidden = true;
  if (event.key === "Enter" && document.activeElement === input) list.querySelector("a")?.click();
});
document.addEventListener("click", ({ target }) => {
  if (!target.closest("search")) list.hidden = true;
});
