// traffic.js: the way of each key through the stations. It turns moments into dots, and
// draws the lines that they follow.
import { routes } from "./lines.js";
import { Motion, pathData, svg } from "./motion.js";
import { text } from "./texts.js";
import { Workers } from "./workers.js";

const tracksAtMost = 40; // whose dots are shown
const momentsAtMost = 40; // that a dot has still to visit
const mergedAtMost = 500;
const root = document.getElementById("diagram");
const withArrow = new Set(["server", "cache", "list", "failed", "done", "backoff-queue"]);

export class Traffic {
	motion = new Motion(document.getElementById("dots"));
	workers = new Workers();
	merged = new Map(); // key → adds that were merged while it waits
	#stations;
	#light;
	#lines = {}; // name → points
	// A key has a dot on its way to the queue, by the name of the key, and each worker has one
	// in its lane, by the number of the worker. A track has the moments that are still to visit.
	#tracks = new Map();
	#stages = [];

	// The stations are elements by stage; light(stage, failed) lights one up.
	constructor(stations, light) {
		this.#stations = stations;
		this.#light = light;
		new ResizeObserver(() => this.layout()).observe(root);
		document.fonts.ready.then(() => this.layout());
	}

	get isMoving() {
		return this.#tracks.size > 0;
	}

	// clear removes all dots at once.
	clear() {
		for (const track of this.#tracks.values()) {
			track.cleared = true;
			track.moments.length = 0;
		}
		this.#tracks.clear();
		this.merged.clear();
		this.motion.finish();
		for (const lane of this.workers.lanes) this.workers.clear(lane);
	}

	// play moves dots for the moments. If there are too many, stations light up without.
	play(moments) {
		for (const moment of moments) {
			const { stage, key, worker } = moment, name = worker ?? key, track = this.#tracks.get(name);
			if (stage === "merged" && this.merged.size < mergedAtMost) this.merged.set(key, (this.merged.get(key) ?? 0) + 1);
			if (stage === "worker") this.merged.delete(key);
			if (document.hidden) continue;
			if (track ? track.moments.length >= momentsAtMost : this.#tracks.size >= tracksAtMost) this.#pass(moment);
			else if (track) track.moments.push(moment);
			else this.#start(name, { moments: [moment], cleared: false });
		}
	}

	#start(name, track) {
		const run = async () => {
			while (track.moments.length) {
				await this.#visit(track, track.moments.shift(), 1 + Math.min(1.6, track.moments.length / 8 + this.#tracks.size / 20));
			}
			if (!track.cleared) this.#tracks.delete(name);
		};
		this.#tracks.set(name, track);
		track.ended = run();
	}

	// show displays the workers of a state. A lane with a dot on its way stays as it is.
	show(workers, stages) {
		this.#stages = stages;
		if (this.workers.resize(workers.length, stages)) this.layout();
		this.workers.lanes.forEach((lane, i) => {
			if (this.#tracks.has(i + 1)) return;
			if (workers[i].key) this.workers.set(lane, workers[i]);
			else this.workers.clear(lane);
		});
	}

	#pass({ stage, failed }) {
		this.#light({ skipped: "handler", merged: "queue", done: this.#stages.at(-1) }[stage] ?? stage, failed);
	}

	// visit moves a key from the stage where it was before to that of the moment.
	async #visit(track, moment, speed) {
		const { stage, key, worker, failed } = moment, lane = this.workers.lanes[worker - 1], followed = key === this.workers.followed;
		const options = { label: followed ? key : key.split("/").at(-1).replace(/^(.{15})..+/, "$1…"), failed, followed, speed };
		const fly = async (line, more) => track.cleared || this.motion.fly(line, this.#lines[line] ?? [], { ...options, ...more });
		if (stage === "worker") await this.#tracks.get(key)?.ended; // its way to the queue
		if (stage === "worker" && lane) this.workers.clear(lane);
		const toQueue = { retry: "backoff-queue", drift: "" }[moment.text] ?? "handler-queue"; // from where the cause is
		const way = { watch: "kubernetes-watch", fifo: "watch-fifo", indexer: "fifo-indexer", handler: "indexer-handler",
			queue: toQueue, merged: toQueue, worker: lane && `lane-${worker}` }[stage];
		if (stage === "watch") this.#light("kubernetes");
		if (way) await fly(way);
		const isLast = stage === "done" || stage === "backoff", writes = stage === "backoff" || lane?.hasSteps; // without a step, it writes nothing
		if (lane && stage === "server" && this.#lines.server) await this.#request(lane, worker, fly);
		if (lane && isLast && writes) await this.#leave(stage === "done" ? "done" : "failed", lane, worker, fly);
		if (track.cleared) return;
		this.#pass(moment);
		if (stage === "actual" || stage === "server") this.#light("cache");
		if (stage === "done" && writes) this.#light("kubernetes");
		if (!lane) return;
		if (isLast) return this.workers.clear(lane);
		this.workers.set(lane, { key, stage, failed, step: stage === "apply" || stage === "server" ? moment.text : "" });
		await this.motion.wait(190 / speed);
	}

	// leave moves a dot out of the lane of a worker, over the rail of a line.
	#leave(line, lane, worker, fly) {
		const rail = this.#lines[line], at = this.workers.position(lane), name = `${line}-${worker}`;
		lane.element.classList.add("departed");
		this.#lines[name] = [at, [rail[0][0], at[1]], ...rail.slice(1)];
		return fly(name, { isAtRight: true });
	}

	// request moves a small dot from the lane to the server and back.
	async #request(lane, worker, fly) {
		const at = this.workers.position(lane), there = [at[0], this.#lines.server[0][1]];
		this.#lines[`request-${worker}`] = [at, there];
		this.#lines[`response-${worker}`] = [there, at];
		await fly(`request-${worker}`, { small: true, failed: false });
		this.#light("server");
		await fly(`response-${worker}`, { small: true });
	}

	// layout draws the lines between the stations, where they are now.
	layout() {
		const frame = root.getBoundingClientRect();
		if (!frame.width || !this.#stages.length) return;
		const box = (element) => {
			const { left, right, top, bottom } = element.getBoundingClientRect();
			return { left: left - frame.left, right: right - frame.left, top: top - frame.top, bottom: bottom - frame.top,
				x: (left + right) / 2 - frame.left, y: (top + bottom) / 2 - frame.top };
		};
		const boxes = (select) => Object.fromEntries(Object.entries(this.#stations).map(([stage, element]) => [stage, box(select(element))]));
		const shape = getComputedStyle(root).getPropertyValue("--shape").trim();
		this.motion.labels = shape !== "narrow";
		const { lines, labels } = routes(shape, frame.width, boxes((element) => element.querySelector(".node")), boxes((element) => element), this.workers.measure(box), this.#stages);
		this.#lines = lines;
		const paths = Object.entries(lines).map(([name, points]) => {
			const path = svg("path", { class: name.replace(/-\d+$/, ""), d: pathData(points) });
			if (withArrow.has(name)) path.setAttribute("marker-end", "url(#arrow)");
			if (name === "server") path.setAttribute("marker-start", "url(#arrow)");
			return path;
		});
		const words = Object.entries(labels).map(([name, [x, y, anchor]]) => {
			const label = svg("text", { x, y, "text-anchor": anchor });
			label.textContent = text()[name];
			return label;
		});
		document.querySelector("#edges g").replaceChildren(...paths, ...words);
	}
}
