// elements.js: helpers that create and change elements.
import { clockTime, text } from "./texts.js";

// setText changes a text only if it is another one.
export function setText(element, value) {
	if (element.textContent !== String(value)) element.textContent = value;
}

// create returns an element with a class and content.
export function create(name, className, ...content) {
	const element = document.createElement(name);
	if (className) element.className = className;
	element.append(...content.filter((part) => part !== undefined && part !== null && part !== false && part !== ""));
	return element;
}

// addressOf returns the address of a key on the page, without the "#". A key may have slashes.
export const addressOf = (key) => /^[^/]+\/[^/]+$/.test(key) ? key : "/" + encodeURIComponent(key);

// api returns the address of data about the controller that the address of the page names.
export function api(path, parameters = {}) {
	const controller = new URLSearchParams(location.search).get("controller"), all = new URLSearchParams(parameters);
	if (controller) all.set("controller", controller);
	return `api/${path}?${all}`;
}

// keyLink returns a link that follows the key.
export function keyLink(key) {
	const link = create("a", "key", key);
	link.href = "#" + addressOf(key);
	return link;
}

// showList shows an element for each item. An element whose item and language did not change
// stays, with its focus. The others are rendered.
export function showList(parent, items, render) {
	const old = new Map([...parent.children].map((element) => [element.version, element]));
	const elements = items.map((item) => {
		const version = document.documentElement.lang + JSON.stringify(item);
		return old.get(version) ?? Object.assign(render(item), { version });
	});
	for (const element of [...parent.children]) if (!elements.includes(element)) element.remove();
	elements.forEach((element, i) => parent.children[i] !== element && parent.insertBefore(element, parent.children[i] ?? null));
}

// showCountdowns shows how long it is until the times of all countdowns.
export function showCountdowns(now) {
	for (const element of document.querySelectorAll(".countdown")) {
		const until = new Date(element.dataset.until), left = until - now;
		setText(element, left > 50 ? text().inSeconds((left / 1000).toFixed(left < 10e3 ? 1 : 0)) : clockTime(until));
		element.parentElement.style.setProperty("--left", Math.max(0, Math.min(1, left / (until - new Date(element.from) || 1))).toFixed(3));
	}
}
