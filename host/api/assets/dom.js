// Building the page. What the daemon says goes in as text, never as markup.

/** An element. `props` are attributes; `class`, `on…` listeners and `data` are understood. Strings become text. */
export function el(tag, props, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(props || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "class") made.className = value;
    else if (name === "data") Object.assign(made.dataset, value);
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children.flat(Infinity).filter((child) => child !== undefined && child !== null && child !== false));
  return made;
}

/** A name that somebody else chose: its direction stays inside. */
export function name(text, props) {
  return el("bdi", props, visible(text));
}

/** Sets the text only where it changed, so that nothing is laid out in vain. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** Sets or removes an attribute, only where it changed. */
export function setAttribute(node, attribute, value) {
  if (value === undefined || value === null || value === false) {
    if (node.hasAttribute(attribute)) node.removeAttribute(attribute);
  } else if (node.getAttribute(attribute) !== String(value)) node.setAttribute(attribute, String(value));
}

/** Text with control characters and marks of direction shown, and with an end. */
export function visible(text, limit = 4000) {
  const plain = String(text ?? "").replace(
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g,
    (mark) => `\u2423${mark.codePointAt(0).toString(16)}`,
  );
  return plain.length > limit ? `${plain.slice(0, limit)} … (${plain.length - limit} characters more)` : plain;
}

/** A sentence; what stands in backquotes is set as code, as in "see `homeostat status`". */
export function words(text, limit) {
  return visible(text, limit).split("`").map((part, at) => (at % 2 === 1 ? el("code", null, part) : part));
}

/** Makes the children of `parent` exactly `wanted`, in this order, moving as little as possible. */
export function arrange(parent, wanted) {
  const keep = new Set(wanted);
  for (const child of [...parent.children]) if (!keep.has(child)) child.remove();
  let at = parent.firstElementChild;
  for (const child of wanted) {
    if (child === at) at = at.nextElementSibling;
    else parent.insertBefore(child, at);
  }
}

/** Renders into `parent` again only when `key` differs from the last time. */
export function renderWhen(parent, key, render) {
  const text = JSON.stringify(key);
  if (parent.renderedKey === text) return;
  parent.renderedKey = text;
  parent.replaceChildren(...[render()].flat(Infinity).filter((child) => child !== undefined && child !== null && child !== false));
}

/** Calls `work` at most once per `wait` ms, and once more after the last request. */
export function throttle(work, wait) {
  let timer = null;
  let last = -Infinity;
  return () => {
    if (timer !== null) return;
    timer = setTimeout(() => {
      timer = null;
      last = performance.now();
      work();
    }, Math.max(0, last + wait - performance.now()));
  };
}
