// motion.js: dots that travel along the lines of the diagram. Dots that would touch
// become one dot with a count, so that their number is bounded at any load.
import { create, setText } from "./elements.js";

const gap = 110; // milliseconds between two dots on a line; fast dots need less
const leastGap = 70;
const patience = 450; // milliseconds that a dot waits for its turn, before it joins another one
const most = 40; // dots at a time
const still = matchMedia("(prefers-reduced-motion: reduce)");

// svg returns an SVG element with attributes.
export function svg(name, attributes = {}) {
	const element = document.createElementNS("http://www.w3.org/2000/svg", name);
	for (const attribute in attributes) element.setAttribute(attribute, attributes[attribute]);
	return element;
}

// pathData returns the lines between points, with rounded corners.
export function pathData(points, radius = 12) {
	const at = (point) => point.map((n) => Math.round(n * 10) / 10).join(" ");
	const corners = points.slice(1, -1).map((corner, i) => {
		const toward = (to) => {
			const length = Math.hypot(to[0] - corner[0], to[1] - corner[1]) || 1, r = Math.min(radius, length / 2) / length;
			return at([corner[0] + (to[0] - corner[0]) * r, corner[1] + (to[1] - corner[1]) * r]);
		};
		return `L${toward(points[i])}Q${at(corner)} ${toward(points[i + 2])}`;
	});
	return `M${at(points[0])}${corners.join("")}L${at(points.at(-1))}`;
}

// lengthOf returns about the length of the lines between points.
const lengthOf = (points) => points.slice(1).reduce((sum, to, i) => sum + Math.hypot(to[0] - points[i][0], to[1] - points[i][1]), 0);

export class Motion {
	#layer;
	#dots = new Set();
	#lines = new Map(); // name of a line → its last dot and when the next one may start
	#paused = false;
	speed = 1;
	labels = true; // whether there is room for the names of keys

	constructor(layer) {
		this.#layer = layer;
	}

	get paused() {
		return this.#paused;
	}

	set paused(paused) {
		this.#paused = paused;
		for (const animation of this.#layer.getAnimations({ subtree: true })) paused ? animation.pause() : animation.play();
	}

	// finish ends all movements at once.
	finish() {
		for (const animation of this.#layer.getAnimations({ subtree: true })) animation.finish();
		this.#lines.clear();
	}

	// fly sends a dot along the points of a line, and resolves when it has arrived. The
	// options are: label, failed, followed, isAtRight, speed and small.
	fly(name, points, options) {
		if (still.matches || document.hidden || points.length < 2) return Promise.resolve();
		const line = this.#lines.get(name) ?? { free: 0, dot: null };
		this.#lines.set(name, line);
		const now = document.timeline.currentTime, wait = Math.max(0, line.free - now), speed = options.speed ?? 1;
		if (this.#dots.has(line.dot) && (wait > patience / speed || this.#dots.size >= most)) {
			line.dot.count++;
			this.#draw(line.dot);
			return line.dot.arrived;
		}
		if (this.#dots.size >= most) return Promise.resolve();
		const dot = line.dot = { count: 1, options, element: create("div", "", create("b"), create("span")) };
		line.free = now + wait + Math.max(leastGap, gap / speed);
		this.#dots.add(dot);
		this.#draw(dot);
		this.#layer.append(dot.element);
		dot.element.style.offsetPath = `path("${pathData(points)}")`;
		const duration = Math.min(900, Math.max(280, lengthOf(points) / 0.45)) / speed;
		dot.arrived = this.#animate(dot.element, { offsetDistance: ["0%", "100%"], visibility: ["visible", "visible"] },
			{ delay: wait, duration, easing: "cubic-bezier(0.45, 0, 0.55, 1)" }).then(() => {
			this.#dots.delete(dot);
			dot.element.remove();
		});
		return dot.arrived;
	}

	// wait resolves after a time, in which the page is not paused.
	wait(ms) {
		return this.#animate(this.#layer, null, ms);
	}

	#animate(element, frames, options) {
		const animation = element.animate(frames, options);
		animation.playbackRate = this.speed;
		if (this.paused) animation.pause();
		return animation.finished;
	}

	#draw({ element, count, options }) {
		const [circle, label] = element.children;
		element.className = ["dot", options.failed && "failed", options.followed && "followed", options.isAtRight && "right", count > 1 ? "many" : options.small && "small"].filter(Boolean).join(" ");
		setText(circle, count > 1 ? count : options.failed ? "!" : "");
		setText(label, this.labels && count === 1 && !options.small && (options.followed || this.#dots.size <= 8) ? options.label ?? "" : "");
	}
}
