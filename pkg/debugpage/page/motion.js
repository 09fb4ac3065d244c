// motion.js: dots that travel along the lines of the diagram. Dots that would touch
// become one dot with a count, so that their number is bounded at any load. Dots are HTML:
// a transform there needs no layout, unlike in SVG.
import { create, setText } from "./elements.js";

const gap = 110; // milliseconds between two dots on a line; fast dots need less
const leastGap = 70;
const patience = 450; // milliseconds that a dot waits for its turn, before it joins another one
const most = 40; // dots at a time
const many = 10; // dots, from which they move in every second frame
const still = matchMedia("(prefers-reduced-motion: reduce)");

// svg returns an SVG element with attributes.
export function svg(name, attributes = {}) {
	const element = document.createElementNS("http://www.w3.org/2000/svg", name);
	for (const attribute in attributes) element.setAttribute(attribute, attributes[attribute]);
	return element;
}

// rounded returns points along the lines between the corners, with rounded corners.
export function rounded(corners, radius = 12) {
	const points = [corners[0]];
	for (let i = 1; i < corners.length - 1; i++) {
		const [a, b, c] = [corners[i - 1], corners[i], corners[i + 1]];
		const toward = (to) => {
			const length = Math.hypot(to[0] - b[0], to[1] - b[1]) || 1, r = Math.min(radius, length / 2) / length;
			return [b[0] + (to[0] - b[0]) * r, b[1] + (to[1] - b[1]) * r];
		};
		const [from, to] = [toward(a), toward(c)];
		for (let t = 0; t <= 1; t += 0.25) {
			points.push([0, 1].map((d) => (1 - t) ** 2 * from[d] + 2 * t * (1 - t) * b[d] + t * t * to[d]));
		}
	}
	return [...points, corners.at(-1)];
}

export const pathData = (points) => "M" + points.map((p) => p.map((n) => Math.round(n * 10) / 10).join(" ")).join("L");

function measure(points) {
	const lengths = [0];
	for (let i = 1; i < points.length; i++) lengths.push(lengths[i - 1] + Math.hypot(points[i][0] - points[i - 1][0], points[i][1] - points[i - 1][1]));
	return { points, lengths, total: lengths.at(-1) };
}

function positionAt({ points, lengths, total }, part) {
	const length = part * total;
	let i = 1;
	while (i < lengths.length - 1 && lengths[i] < length) i++;
	const t = (length - lengths[i - 1]) / (lengths[i] - lengths[i - 1] || 1);
	return [0, 1].map((d) => points[i - 1][d] + t * (points[i][d] - points[i - 1][d]));
}

export class Motion {
	#layer;
	#dots = new Set();
	#spare = [];
	#lines = new Map(); // name of a line → its last dot and when the next one may start
	#clock = 0; // milliseconds; it stops while the page is paused
	#waits = [];
	#frame = 0;
	#last = 0;
	paused = false;
	labels = true; // whether there is room for the names of keys

	constructor(layer) {
		this.#layer = layer;
	}

	// fly sends a dot along the points of a line, and resolves when it has arrived. The
	// options are: key, failed, followed, speed and small.
	fly(name, points, options) {
		if (still.matches || document.hidden || points.length < 2) return Promise.resolve();
		const line = this.#lines.get(name) ?? { free: 0, dot: null };
		this.#lines.set(name, line);
		const start = Math.max(this.#clock, line.free);
		return new Promise((arrived) => {
			const speed = options.speed ?? 1;
			if (line.dot && (start - this.#clock > patience / speed || this.#dots.size >= most) && this.#dots.has(line.dot)) {
				line.dot.arrivals.push(arrived);
				this.#draw(line.dot);
				return;
			}
			if (this.#dots.size >= most) return arrived();
			const path = measure(points);
			const dot = { path, start, duration: Math.min(900, Math.max(280, path.total / 0.45)) / speed, arrivals: [arrived], options, element: this.#element() };
			line.free = start + Math.max(leastGap, gap / speed);
			line.dot = dot;
			this.#dots.add(dot);
			this.#draw(dot);
			this.#run();
		});
	}

	// wait resolves after a time, in which the page is not paused.
	wait(ms) {
		return new Promise((resolve) => {
			this.#waits.push({ until: this.#clock + ms, resolve });
			this.#run();
		});
	}

	resume() {
		this.paused = false;
		this.#run();
	}

	#element() {
		const element = this.#spare.pop() ?? create("div", "", create("b"), create("span"));
		element.style.visibility = "hidden";
		this.#layer.append(element);
		return element;
	}

	#draw({ element, arrivals, options }) {
		const [circle, label] = element.children, n = arrivals.length;
		element.className = ["dot", options.failed && "failed", options.followed && "followed", n > 1 ? "many" : options.small && "small"].filter(Boolean).join(" ");
		setText(circle, n > 1 ? n : options.failed ? "!" : "");
		setText(label, this.labels && n === 1 && !options.small && (options.followed || this.#dots.size <= 8) ? options.label ?? "" : "");
	}

	#run() {
		if (this.#frame || this.paused) return;
		this.#last = performance.now();
		this.#frame = requestAnimationFrame(this.#step);
	}

	#step = (now) => {
		this.#frame = 0;
		if (this.paused) return;
		if (this.#dots.size > many && now - this.#last < 30) return void (this.#frame = requestAnimationFrame(this.#step));
		this.#clock += Math.min(100, Math.max(0, now - this.#last)); // a hidden tab does not make dots jump
		this.#last = now;
		for (const dot of this.#dots) {
			const part = (this.#clock - dot.start) / dot.duration;
			if (part < 0) continue;
			if (part >= 1) {
				this.#dots.delete(dot);
				dot.element.remove();
				this.#spare.push(dot.element);
				dot.arrivals.forEach((arrived) => arrived());
				continue;
			}
			const eased = part < 0.5 ? 2 * part * part : 1 - 2 * (1 - part) ** 2;
			const [x, y] = positionAt(dot.path, eased);
			dot.element.style.transform = `translate(${x.toFixed(1)}px, ${y.toFixed(1)}px)`;
			if (dot.element.style.visibility) dot.element.style.visibility = "";
		}
		const over = this.#waits.filter((wait) => wait.until <= this.#clock);
		this.#waits = this.#waits.filter((wait) => wait.until > this.#clock);
		over.forEach((wait) => wait.resolve());
		if (this.#dots.size || this.#waits.length) this.#frame ||= requestAnimationFrame(this.#step);
	};
}
