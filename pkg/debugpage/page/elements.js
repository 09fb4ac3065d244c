// elements.js: helpers that create and change elements.

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

// keyLink returns a link that follows the key.
export function keyLink(key) {
	const link = create("a", "key", key);
	link.href = "#" + key;
	return link;
}
