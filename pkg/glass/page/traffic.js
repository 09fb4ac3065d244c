// traffic.js: the way of each key through the stations. It turns moments into dots, and
// draws the lines that they follow.
import { routes } from "./lines.js";
import { Motion, pathData, svg } from "./motion.js";
import { text } from "./texts.js";
import { Workers } from "./workers.js";

const playersAtMost = 40; // keys whose dots are shown one by one
const stagesAtMost = 60; // that a dot has still to visit
const mergedAtMost = 500;
const arrivals = { retry: "backoff-queue", drift: "" }; // lines to the queue by the cause of an add, if not from a handler
// A key has two dots at most: while a worker has it, its next event may arrive.
const trackOf = ({ worker }) => worker ? "worker " : "event ";
const root = document.getElementById("diagram");
const withArrow = new Set(["server", "cache", "list", "failed", "done", "backoff-queue"]);

export class Traffic {
	#motion = new Motion(document.getElementById("dots"));
	#stations;
	#light;
	#lines = {}; // name → points
	#players = new Map(); // track and key → a dot, with the stages that it has still to visit
	workers = new Workers(() => this.layout());
	merged = new Map(); // key → adds that were merged while it waits
	followed = "";
	#stages = [];

	// The stations are elements by stage; light(stage, failed) lights one up.
	constructor(stations, light) {
		this.#stations = stations;
		this.#light = light;
		new ResizeObserver(() => this.layout()).observe(root);
		document.fonts.ready.then(() => this.layout());
	}

	// The stages of a sync.
	set stages(stages) {
		this.#stages = stages;
		this.workers.stages = stages;
	}

	get isMoving() {
		return this.#players.size > 0;
	}

	get paused() {
		return this.#motion.paused;
	}

	set paused(paused) {
		this.#motion.paused = paused;
	}

	set speed(speed) {
		this.#motion.speed = speed;
	}

	// clear removes all dots at once.
	clear() {
		for (const player of this.#players.values()) {
			player.cleared = true;
			player.stages.length = 0;
			player.wake?.();
		}
		this.#players.clear();
		this.merged.clear();
		this.#motion.finish();
	}

	// play moves dots for the moments. If there are too many, stations light up without.
	play(moments) {
		for (const moment of moments) {
			this.#noteMerged(moment);
			if (document.hidden) continue;
			const player = this.#players.get(trackOf(moment) + moment.key);
			if (!player && this.#players.size < playersAtMost) this.#start(moment);
			else if (player && player.stages.length < stagesAtMost) this.#extend(player, moment);
			else this.#pass(moment);
		}
	}

	#noteMerged({ stage, key }) {
		if (stage === "merged" && this.merged.size < mergedAtMost) this.merged.set(key, (this.merged.get(key) ?? 0) + 1);
		if (stage === "worker") this.merged.delete(key);
	}

	#extend(player, moment) {
		player.stages.push(moment);
		player.wake?.();
	}

	// start moves the dot of a key until it has visited all its stages. In the lane of a
	// worker, it waits for the next one.
	async #start(first) {
		const { key } = first, name = trackOf(first) + key, player = { key, stages: [first], lane: null, hasSteps: false, wake: null, idleSince: 0 };
		player.ended = new Promise((end) => player.end = end);
		this.#players.set(name, player);
		while (player.stages.length) {
			if (player.stages[0].stage === "worker") { // which it reaches after its way to the queue
				player.isComing = true;
				await this.#players.get("event " + key)?.ended;
				player.isComing = false;
				if (player.cleared) break;
			}
			await this.#visit(player, player.stages.shift(), 1 + Math.min(1.6, player.stages.length / 8 + this.#players.size / 20));
			if (player.stages.length || !player.lane || player.cleared) continue;
			player.idleSince = performance.now();
			await new Promise((wake) => player.wake = wake);
			player.wake = null;
		}
		this.workers.leave(player.lane);
		if (!player.cleared) this.#players.delete(name);
		player.end();
	}

	// show displays the workers of a state, and how many are busy. A worker does not have a
	// key whose dot is still on its way to it. It ends the way of dots whose last moments
	// did not arrive.
	show(workers) {
		for (const { key, lane, wake, idleSince } of this.#players.values()) {
			if (wake && performance.now() - idleSince > 1000 && workers[lane.worker - 1]?.key !== key) wake();
		}
		const shown = workers.map((worker) => this.#players.get("worker " + worker.key)?.isComing ? { number: worker.number } : worker);
		return this.workers.show(shown, this.followed);
	}

	#pass({ stage, failed }) {
		this.#light({ skipped: "handler", merged: "queue", done: this.#stages.at(-1) }[stage] ?? stage, failed);
	}

	// visit moves a key from the stage where it was before to that of the moment.
	async #visit(player, moment, speed) {
		const { stage, key, worker, failed } = moment, followed = key === this.followed;
		const options = { label: followed ? key : key.split("/").at(-1).replace(/^(.{15})..+/, "$1…"), failed, followed, speed };
		const fly = async (line, more) => player.cleared || this.#motion.fly(line, this.#lines[line] ?? [], { ...options, ...more });
		if (worker && !player.lane) player.lane = await this.workers.enter(worker, key);
		const lane = player.lane;
		const way = { watch: "kubernetes-watch", fifo: "watch-fifo", indexer: "fifo-indexer", handler: "indexer-handler",
			queue: arrivals[moment.text] ?? "handler-queue", merged: arrivals[moment.text] ?? "handler-queue", worker: lane && `lane-${lane.slot}` }[stage];
		if (stage === "watch") this.#light("kubernetes");
		if (way) await fly(way);
		if (lane && stage === "server" && this.#lines.server) await this.#request(lane, fly);
		if (stage === "apply") player.hasSteps = true;
		if (lane && stage === "done" && player.hasSteps) await this.#leave("done", lane, fly);
		if (lane && stage === "backoff") await this.#leave("failed", lane, fly);
		if (player.cleared) return;
		this.#pass(moment);
		if (stage === "actual" || stage === "server") this.#light("cache");
		if (stage === "done" && player.hasSteps) this.#light("kubernetes"); // a sync without a step writes nothing
		if (!lane) return;
		this.workers.move(lane, moment, this.followed);
		await this.#motion.wait(190 / speed);
		if (stage !== "done" && stage !== "backoff") return;
		this.workers.leave(lane);
		player.lane = null;
	}

	// leave moves a dot out of the lane of a worker, over the rail of a line.
	#leave(line, lane, fly) {
		const rail = this.#lines[line], at = this.workers.position(lane), name = `${line}-${lane.slot}`;
		this.workers.depart(lane);
		this.#lines[name] = [at, [rail[0][0], at[1]], ...rail.slice(1)];
		return fly(name, { isAtRight: true });
	}

	// request moves a small dot from the lane to the server and back.
	async #request(lane, fly) {
		const at = this.workers.position(lane), there = [at[0], this.#lines.server[0][1]];
		this.#lines[`request-${lane.slot}`] = [at, there];
		this.#lines[`response-${lane.slot}`] = [there, at];
		await fly(`request-${lane.slot}`, { small: true, failed: false });
		this.#light("server");
		await fly(`response-${lane.slot}`, { small: true });
	}

	// layout draws the lines between the stations, where they are now.
	layout() {
		const frame = root.getBoundingClientRect();
		if (!frame.width || !this.#stages.length) return;
		const box = (element) => {
			const r = element.getBoundingClientRect();
			return { left: r.left - frame.left, right: r.right - frame.left, top: r.top - frame.top, bottom: r.bottom - frame.top, x: (r.left + r.right) / 2 - frame.left, y: (r.top + r.bottom) / 2 - frame.top };
		};
		const boxes = (select) => Object.fromEntries(Object.entries(this.#stations).map(([stage, element]) => [stage, box(select(element))]));
		const shape = getComputedStyle(root).getPropertyValue("--shape").trim();
		this.#motion.labels = shape !== "narrow";
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
