// The pages work without this script. It follows a session and the list while they grow, reads on at the end
// of a part, opens long texts in place, marks the turn in the outline, and adds keys.

const $ = (selector, root = document) => root.querySelector(selector);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const entries = $("#entries");
const path = entries?.dataset.path;

async function load(address) {
  const answer = await fetch(address, { headers: { Accept: "text/html" }, credentials: "same-origin" });
  if (!answer.ok) throw new Error(`${address}: ${answer.status}`);
  return new DOMParser().parseFromString(await answer.text(), "text/html");
}

// place puts entries at the end, or in the place of entries that are there.
function place(part) {
  for (const heading of all("h2.turn", part)) {
    if (heading.id && document.getElementById(heading.id)) heading.remove();
  }
  const known = new Map(all(".entry", entries).map((e) => [e.id, e]));
  for (const node of [...part.children]) {
    const old = node.classList.contains("entry") && known.get(node.id);
    if (old) {
      const open = all("details", old).map((d) => d.open);
      all("details", node).forEach((d, i) => { if (i < open.length) d.open ||= open[i]; });
      old.replaceWith(node);
    } else if (!node.classList.contains("none") || !entries.children.length) {
      entries.append(node);
    }
  }
  for (const e of all(".entry", entries)) {
    entries.dataset.to = Math.max(Number(entries.dataset.to), Number(e.dataset.last));
  }
}

// A session that grows: each event of the stream asks for the entries that it may have changed.
let wanted = 0;
let running = false;

async function refresh() {
  if (running) return;
  running = true;
  while (wanted > Number(entries.dataset.to)) {
    const upTo = wanted;
    const open = $(".entry[data-open]", entries);
    const from = open && upTo - Number(open.dataset.seq) < 140 ? Number(open.dataset.seq) : Number(entries.dataset.to) + 1;
    const atEnd = window.innerHeight + window.scrollY >= document.body.scrollHeight - 80;
    try {
      place((await load(`${path}/entries?from=${from}`)).body);
    } catch {
      break;
    }
    entries.dataset.to = Math.max(Number(entries.dataset.to), Math.min(upTo, from + 149));
    if (atEnd) window.scrollTo({ top: document.body.scrollHeight });
  }
  running = false;
}

function follow() {
  const stream = new EventSource(`${path}/stream?from=${Number(entries.dataset.to) + 1}`);
  stream.addEventListener("event", (e) => {
    wanted = Math.max(wanted, JSON.parse(e.data).seq);
    refresh();
  });
  window.addEventListener("pagehide", () => stream.close());
}
if (entries?.hasAttribute("data-live")) follow();

// The list shows new sessions and events. It is read again when one has changed, less often if that
// takes long.
function followList() {
  let changed = false;
  let waits = false;
  async function refresh() {
    if (!changed || waits || document.hidden) return;
    changed = false;
    waits = true;
    const begin = Date.now();
    try {
      const fresh = all("[data-list]", await load(location.href));
      const focus = document.activeElement?.closest("[data-list]") && document.activeElement.getAttribute("href");
      all("[data-list]").forEach((old, i) => old.replaceWith(fresh[i]));
      if (focus) all("[data-list] a").find((a) => a.getAttribute("href") === focus)?.focus({ preventScroll: true });
    } catch { /* the next change tries again */ }
    setTimeout(() => { waits = false; refresh(); }, Math.max(1000, 4 * (Date.now() - begin)));
  }
  const change = () => { changed = true; refresh(); };
  const stream = new EventSource("/api/v1/live?after=now");
  stream.onopen = change; // what came since the page was made
  stream.onmessage = change;
  document.addEventListener("visibilitychange", refresh);
  setInterval(() => { if ($("[data-list] .live")) change(); }, 60000); // a dot goes out
  window.addEventListener("pagehide", () => stream.close());
}
if ($("[data-list]")) followList();

// The outline of a long session comes when it has been read.
const reading = $("[data-reading]");
if (reading) load(reading.dataset.reading).then(() => location.reload(), () => {}); // the link stays

// The next part comes when the reader is near the end.
const later = $("#later");
if (later && entries) {
  new IntersectionObserver(async (seen, observer) => {
    if (!seen.some((s) => s.isIntersecting)) return;
    observer.disconnect();
    try {
      const page = await load(later.href);
      place($("#entries", page));
      entries.dataset.to = Math.max(Number(entries.dataset.to), Number($("#entries", page).dataset.to));
      const next = $("#later", page);
      if (next) {
        later.href = next.getAttribute("href");
        observer.observe(later);
      } else {
        all(".pager a", $("#end")).forEach((a) => a.remove());
        if ($("#entries", page).hasAttribute("data-live")) follow();
      }
    } catch { /* the link stays */ }
  }, { rootMargin: "600px" }).observe(later);
}

// A long text is opened in place.
document.addEventListener("click", async (e) => {
  const more = e.target.closest?.(".more a");
  const entry = more?.closest(".entry");
  if (!entry || !entries) return;
  e.preventDefault();
  try {
    const whole = $(".entry", await load(more.href));
    const index = all("pre, .msg, .prose", entry).findIndex((n) => n.nextElementSibling === more.parentElement || n.contains(more));
    const target = all("pre, .msg, .prose", entry)[index];
    const text = whole.dataset.seq === entry.dataset.seq ? all("pre, .msg, .prose", whole)[index] : null;
    if (!text) throw new Error();
    more.parentElement.remove();
    target.replaceWith(text);
  } catch {
    location.href = more.href;
  }
});

// The conversation of a sub-agent is opened in place.
document.addEventListener("toggle", async (e) => {
  const child = e.target;
  if (!child.open || !child.dataset?.session || $("div", child)) return;
  const inner = document.createElement("div");
  child.append(inner);
  try {
    inner.append(...(await load(`${child.dataset.session}/entries`)).body.children);
  } catch {
    inner.remove(); // the link stays
    return;
  }
  for (const node of all("*", inner)) { // they are of another session
    ["id", "data-seq", "data-last", "data-open"].forEach((name) => node.removeAttribute(name));
  }
}, true);

// The outline marks the turn that is read.
const marks = new Map(all(".outline a").map((a) => [a.hash.slice(1), a]));
if (marks.size) {
  let now;
  const mark = () => {
    const passed = all("h2.turn").filter((h) => h.getBoundingClientRect().top < 160);
    const link = marks.get((passed.at(-1) ?? $("h2.turn"))?.id);
    if (link === now) return;
    now?.classList.remove("on");
    link?.classList.add("on");
    now = link;
  };
  document.addEventListener("scroll", mark, { passive: true });
  mark();
  for (const a of marks.values()) {
    a.addEventListener("click", (e) => {
      const turn = document.getElementById(a.hash.slice(1));
      if (!turn) return;
      e.preventDefault();
      history.replaceState(null, "", a.hash);
      turn.scrollIntoView();
      turn.focus({ preventScroll: true });
    });
  }
}

// The slider shows its event while it moves, and goes there.
const slider = $(".slider input");
slider?.addEventListener("input", () => { $(".slider output").textContent = `#${slider.value}`; });
slider?.addEventListener("change", () => slider.form.submit());

// Keys: j and k go from entry to entry, [ and ] from turn to turn, g to the newest, / searches.
function step(list, forward) {
  const top = 90;
  const next = forward ? list.find((n) => n.getBoundingClientRect().top > top + 4) : list.findLast((n) => n.getBoundingClientRect().top < top - 4);
  if (next) window.scrollBy({ top: next.getBoundingClientRect().top - top });
}
const keys = {
  j: () => step(all(".entry, tbody tr, .hits li"), true),
  k: () => step(all(".entry, tbody tr, .hits li"), false),
  "]": () => step(all("h2.turn, main h2"), true),
  "[": () => step(all("h2.turn, main h2"), false),
  g: () => window.scrollTo({ top: document.body.scrollHeight }),
  "/": () => $(".top input[type=search]")?.focus(),
  "?": help,
};
document.addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || e.target.closest?.("input, select, textarea, button")) return;
  if (keys[e.key]) {
    e.preventDefault();
    keys[e.key]();
  }
});

function help() {
  let dialog = $("dialog");
  if (!dialog) {
    dialog = document.createElement("dialog");
    const text = document.createElement("p");
    text.textContent = "j k: next and previous entry · [ ]: turn · g: newest · /: search · Esc: close";
    dialog.append(text);
    document.body.append(dialog);
  }
  dialog.showModal();
}
