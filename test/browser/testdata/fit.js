// Finds what does not fit on the debug page. TestFailure runs it in the page.

// busy shows a state with all that a page can have at a time, and keeps it: the page is
// paused. In the same task, no other state can arrive.
function busy(state) {
	const key = (i) => `team-networks-${i}/a-network-with-quite-a-long-name-${i}`;
	const from = state.time, until = new Date(new Date(from).getTime() + 754_000).toISOString();
	const waiting = Array.from({ length: 20 }, (_, i) => ({ key: key(i), failures: i + 9, from, until }));
	const stages = ["worker", "desired", "actual", "plan", "apply", "server", "report", "apply"];
	state.queue = { depth: 12_345, front: stages.map((_, i) => key(i)), merged: 123_456, waiting, waitingCount: 9876 };
	state.workers = stages.map((stage, i) => ({ number: i + 1, key: key(i), stage, step: "create subnet 2001:db8:1234:5678::/64" }));
	for (const informer of state.informers) Object.assign(informer, { objects: 100_000, resourceVersion: "123456789" });
	for (const kind in state.handlers) state.handlers[kind] = 123_456;
	for (const server of state.servers) server.requests = 123_456;
	for (const { cache } of state.servers) Object.assign(cache, { objects: 100_000, text: "networks, 100000 subnets" });
	observed.stream.dispatchEvent(new MessageEvent("state", { data: JSON.stringify(state) }));
	document.getElementById("pause").click();
	return true;
}

// choose selects the theme and the language with the page's buttons.
function choose(dark, language) {
	if ((document.documentElement.dataset.theme === "dark") !== dark) document.getElementById("theme").click();
	if (document.documentElement.lang !== (language || "en")) document.getElementById("language").click();
	return true;
}

const isVisible = (element) => element.checkVisibility({ opacityProperty: true, visibilityProperty: true });
const overlap = (a, b, by) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > by && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > by;
const contains = (outer, inner) => inner.left >= outer.left - 1 && inner.right <= outer.right + 1 && inner.top >= outer.top - 1 && inner.bottom <= outer.bottom + 1;

// clipped returns the part of a rectangle that the element's ancestors show: those with an
// ellipsis may hide text.
function clipped(rect, element) {
	let { left, right, top, bottom } = rect;
	for (let e = element; e; e = e.parentElement) {
		if (getComputedStyle(e).textOverflow !== "ellipsis") continue;
		const box = e.getBoundingClientRect();
		[left, right] = [Math.max(left, box.left), Math.min(right, box.right)];
	}
	return { left, right, top, bottom };
}

// texts returns the lines of all visible texts, with the element of each.
function texts() {
	const found = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), range = document.createRange();
	for (let node; (node = walker.nextNode());) {
		const element = node.parentElement;
		if (!node.data.trim() || !isVisible(element) || element.closest(".hidden, .skip, option, datalist")) continue;
		range.selectNodeContents(node);
		for (const rect of range.getClientRects()) {
			const shown = clipped(rect, element);
			if (shown.right - shown.left > 1) found.push({ ...shown, element, words: node.data.trim().slice(0, 40) });
		}
	}
	return found;
}

// misfits returns what does not fit, in words, after the page has drawn its lines.
async function misfits() {
	for (let frame = 0; frame < 2; frame++) await new Promise(requestAnimationFrame);
	const found = new Set(), all = texts(), diagram = document.getElementById("diagram"), frame = diagram.getBoundingClientRect();
	const page = { left: 0, right: innerWidth, top: -Infinity, bottom: Infinity };
	const of = (element) => element.dataset?.stage ?? element.closest("[data-stage]")?.dataset.stage ?? element.id ?? element.tagName;

	// Nothing is beyond what contains it.
	for (const element of document.querySelectorAll("body *:not(.skip, svg *)")) {
		if (isVisible(element) && element.getBoundingClientRect().right > innerWidth && !element.closest("#diagram")) found.add(`${element.id || element.className || element.tagName} ${of(element)} is beyond the window`);
	}
	for (const text of all) {
		const container = text.element.closest(".node, .keys li, .station, .lane, #diagram, section, header") ?? document.body;
		if (!contains(container === document.body ? page : container.getBoundingClientRect(), text)) found.add(`"${text.words}" is beyond ${container.className || container.id || container.tagName} ${of(container)}`);
	}
	for (const element of diagram.querySelectorAll("section, .lane, .stops, li, .node, #edges text")) {
		if (isVisible(element) && !contains(frame, element.getBoundingClientRect())) found.add(`${element.className || element.tagName} ${of(element)} is beyond the diagram`);
	}

	// No text is over another.
	const rows = all.sort((a, b) => a.top - b.top);
	rows.forEach((text, i) => {
		for (let j = i + 1; j < rows.length && rows[j].top < text.bottom; j++) {
			if (rows[j].element !== text.element && overlap(text, rows[j], 3)) found.add(`"${text.words}" is over "${rows[j].words}"`);
		}
	});

	// No line runs through a control or a text, or leaves the diagram.
	const controls = [...document.querySelectorAll("button, a, select, input, summary")].filter(isVisible);
	const obstacles = [...controls.map((element) => ({ ...element.getBoundingClientRect().toJSON(), words: `control ${element.id || element.textContent}` })), ...all];
	for (const path of diagram.querySelectorAll("#edges path:not(marker path)")) {
		for (let at = 0, length = path.getTotalLength(); at <= length; at += 4) {
			const point = path.getPointAtLength(at), x = point.x + frame.left, y = point.y + frame.top;
			if (!contains(frame, { left: x, right: x, top: y, bottom: y })) found.add(`the line ${path.getAttribute("class")} leaves the diagram`);
			for (const o of obstacles) {
				if (!o.element?.closest(".node") && x > o.left + 1 && x < o.right - 1 && y > o.top + 3 && y < o.bottom - 3) found.add(`the line ${path.getAttribute("class")} runs through ${o.words}`);
			}
		}
	}
	return [...found];
}
