// diagram.js: the stations with their numbers, the lines between them, and the path
// that each key takes over them.
import { duration, number, text } from "./texts.js";
import { create, keyLink, setText } from "./elements.js";
import { routes } from "./lines.js";
import { Motion, pathData, rounded, svg } from "./motion.js";
import { Workers } from "./workers.js";

const litFor = 600; // milliseconds
const playersAtMost = 120; // keys whose dots are shown one by one
const keysAtMost = 4; // keys in the queue that have a line of their own
const waitingAtMost = 6; // keys in the backoff
const root = document.getElementById("diagram");
const stations = Object.fromEntries([...root.querySelectorAll("[data-stage]")].map((element) => [element.dataset.stage, element]));
const withArrow = new Set(["neutron", "cache", "list", "failed", "done", "backoff-queue"]);
const inWorker = ["desired", "actual", "plan", "apply", "report"];
const sum = (list, field) => list.reduce((total, item) => total + item[field], 0);

export class Diagram {
	#motion = new Motion(document.getElementById("dots"));
	#workers;
	#now;
	#state = null;
	#connection = "connecting";
	#lines = {}; // name → points
	#players = new Map(); // key → stages that its dot has still to visit
	#merged = new Map(); // key → adds that were merged while it waits
	#announced = "";
	#explained = null;
	followed = "";

	constructor(now) {
		this.#now = now;
		this.#workers = new Workers(() => this.#layout());
		for (const [stage, element] of Object.entries(stations)) this.#explainOn(stage, element.querySelector("button"), element);
		new ResizeObserver(() => this.#layout()).observe(root);
		document.fonts.ready.then(() => this.#layout());
		setInterval(() => this.#countDown(), 200);
		setInterval(() => this.#dim(), 100);
		setInterval(() => this.#announce(), 5000);
	}

	set paused(paused) {
		if (paused) this.#motion.paused = true;
		else this.#motion.resume();
	}

	set connection(connection) {
		this.#connection = connection;
		this.#headline();
	}

	// retext shows everything in the current language.
	retext() {
		for (const [stage, element] of Object.entries(stations)) {
			const [name, unit, explanation] = text().stations[stage];
			setText(element.querySelector(".name"), name);
			element.querySelector(".name").title = explanation;
			if (unit) setText(element.querySelector(".unit"), unit);
		}
		if (this.#state) this.show(this.#state);
		this.#headline();
		this.#layout();
	}

	// show displays a state. Dots on their way are not affected.
	show(state) {
		this.#state = state;
		const t = text(), networks = state.informers.filter((i) => i.kind === "Network");
		root.classList.toggle("standby", !state.process.leads);
		const worst = ["waiting", "listing", "watching"].find((a) => networks.some((i) => i.activity === a)) ?? "listing";
		stations.watch.dataset.activity = worst;
		const one = networks.length === 1;
		this.#count("watch", one ? networks[0].resourceVersion : networks.length, one ? "resourceVersion" : t.watchesOpen);
		setText(stations.watch.querySelector(".more"), t.activities[worst]);
		this.#count("fifo", sum(networks, "fifo"));
		this.#count("indexer", sum(networks, "objects"));
		const h = state.handlers;
		this.#count("handler", h.add + h.update + h.delete);
		setText(stations.handler.querySelector(".more"), t.handlerKinds(h, number).join("\n"));
		this.#showQueue(state.queue);
		for (const stage of inWorker) this.#count(stage, state.workers.filter((w) => w.stage === stage).length);
		const busy = this.#workers.show(state.workers, this.followed);
		this.#count("worker", busy, t.busy(number(busy), number(state.workers.length)));
		this.#count("neutron", state.neutron.requests);
		setText(stations.neutron.querySelector(".unit"), `${t.stations.neutron[1]}\n${t.inFlight(state.neutron.inFlight, state.neutron.limit)}`);
		this.#count("cache", state.cache.networks);
		this.#countDown();
		this.#headline();
	}

	#count(stage, value, unit) {
		const element = stations[stage];
		if (element.dataset.count !== String(value)) element.dataset.count = value;
		const count = element.querySelector(".count");
		if (count) setText(count, typeof value === "string" ? value : number(value));
		if (unit !== undefined) setText(element.querySelector(".unit"), unit);
	}

	#showQueue(queue) {
		this.#count("queue", queue.depth, `${text().stations.queue[1]}\n${text().merged(number(queue.merged))}`);
		const front = queue.front.slice(0, keysAtMost), keys = stations.queue.querySelector(".keys");
		while (keys.children.length > front.length) keys.lastChild.remove();
		front.forEach((key, i) => {
			if (!keys.children[i]) keys.append(document.createElement("li"));
			const item = keys.children[i];
			if (item.dataset.key !== key) item.replaceChildren(keyLink(key));
			item.dataset.key = key;
			item.dataset.merged = this.#merged.get(key) ?? "";
			item.classList.toggle("followed", key === this.followed);
		});
		const more = queue.depth - front.length;
		setText(stations.queue.querySelector(".more"), more > 0 ? text().moreKeys(number(more)) : "");

		this.#count("backoff", queue.waitingCount);
		const shown = queue.waiting.slice(0, waitingAtMost), list = document.getElementById("backoff");
		const old = new Map([...list.children].map((item) => [item.dataset.key, item]));
		const items = shown.map((waiting) => {
			const item = this.#waitingItem(old.get(waiting.key), waiting);
			old.delete(waiting.key);
			return item;
		});
		if (items.length !== list.children.length || items.some((item, i) => item !== list.children[i])) list.replaceChildren(...items);
	}

	#waitingItem(item, waiting) {
		if (!item) {
			item = create("li", "", keyLink(waiting.key), ...["why", "countdown", "bar"].map((name) => create("span", name)));
			item.dataset.key = waiting.key;
		}
		item.waiting = waiting;
		item.classList.toggle("followed", waiting.key === this.followed);
		setText(item.querySelector(".why"), text().reasons[waiting.reason]?.(number(waiting.failures ?? 1)) ?? waiting.reason);
		return item;
	}

	// countDown shows how long each key waits, and how old the cache is.
	#countDown() {
		const state = this.#state;
		if (!state || this.#motion.paused) return;
		for (const item of document.getElementById("backoff").children) {
			const { from, until } = item.waiting, left = new Date(until) - this.#now();
			setText(item.querySelector(".countdown"), left > 50 ? text().inSeconds((left / 1000).toFixed(left < 10e3 ? 1 : 0)) : text().now);
			item.style.setProperty("--left", Math.max(0, Math.min(1, left / (new Date(until) - new Date(from) || 1))).toFixed(3));
		}
		const t = text(), age = state.cache.refreshed ? t.listedAgo(duration(Math.max(0, Math.round((this.#now() - new Date(state.cache.refreshed)) / 1000) * 1000))) : t.neverListed;
		setText(stations.cache.querySelector(".unit"), `${t.stations.cache[1]}${t.subnets(number(state.cache.subnets))}\n${age}`);
	}

	// explainOn shows what a station does while a person points at it.
	#explainOn(stage, button, element) {
		const explain = (on) => () => {
			this.#explained = on ? stage : null;
			this.#headline();
		};
		for (const type of ["pointerenter"]) element.addEventListener(type, explain(true));
		for (const type of ["pointerleave"]) element.addEventListener(type, explain(false));
		button.addEventListener("focus", explain(true));
		button.addEventListener("blur", explain(false));
	}

	#summary() {
		const s = this.#state;
		if (this.#connection !== "open") return [this.#connection, {}];
		if (!s) return ["connecting", {}];
		const busy = s.workers.filter((w) => w.key).length, activity = stations.watch.dataset.activity;
		const facts = { busy: busy && number(busy), depth: s.queue.depth && number(s.queue.depth), waiting: number(s.queue.waitingCount), objects: stations.indexer.querySelector(".count").textContent, holder: s.process.holder };
		if (activity !== "watching") return [activity, facts];
		if (!s.process.leads) return ["standby", facts];
		if (busy || s.queue.depth) return ["working", facts];
		if (this.#players.size) return ["moving", facts];
		return [s.queue.waitingCount ? "failing" : "rest", facts];
	}

	#headline() {
		const [kind, facts] = this.#summary(), t = text();
		setText(document.getElementById("headline"), this.#explained ? t.stations[this.#explained][0] : t.headline[kind](facts));
		setText(document.getElementById("explain"), this.#explained ? t.stations[this.#explained][2] : t.hint);
	}

	// announce gives screen readers a summary, when another kind of thing happens.
	#announce() {
		const [kind, facts] = this.#summary();
		if (kind === this.#announced) return;
		this.#announced = kind;
		setText(document.getElementById("announce"), text().headline[kind](facts));
	}

	#light(stage, failed) {
		const element = stations[stage];
		if (!element) return;
		element.classList.toggle("failing", Boolean(failed));
		element.litUntil = performance.now() + litFor;
		element.classList.add("lit");
	}

	#dim() {
		if (this.#motion.paused) return;
		for (const element of Object.values(stations)) {
			if (element.litUntil < performance.now()) element.classList.remove("lit", "failing");
		}
	}

	// play moves dots for the moments. If there are too many, stations light up without.
	play(moments) {
		for (const moment of moments) {
			this.#noteMerged(moment);
			if (document.hidden) continue;
			const player = this.#players.get(moment.key);
			if (!player && this.#players.size < playersAtMost) this.#start(moment);
			else if (player && player.stages.length < 60) player.stages.push(moment);
			else this.#pass(moment);
		}
	}

	#noteMerged({ stage, key }) {
		if (stage === "merged" && this.#merged.size < 500) this.#merged.set(key, (this.#merged.get(key) ?? 0) + 1);
		if (stage === "worker") this.#merged.delete(key);
	}

	async #start(first) {
		const player = { stages: [first], before: "", lane: null };
		this.#players.set(first.key, player);
		while (player.stages.length) {
			const moment = player.stages.shift();
			await this.#visit(player, moment, 1 + Math.min(5, player.stages.length / 8 + this.#players.size / 20));
			player.before = moment.stage;
		}
		this.#workers.leave(player.lane);
		this.#players.delete(first.key);
	}

	#pass({ stage, failed }) {
		this.#light({ skipped: "handler", merged: "queue", done: "report" }[stage] ?? stage, failed);
	}

	// visit moves a key from the stage where it was before to that of the moment.
	async #visit(player, moment, speed) {
		const { stage, key, worker, failed } = moment, followed = key === this.followed;
		const options = { label: followed ? key : key.split("/")[1], failed, followed, speed };
		const fly = (line, more) => this.#motion.fly(line, this.#lines[line] ?? [], { ...options, ...more });
		if (worker && !player.lane) player.lane = await this.#workers.enter(worker, key);
		const lane = player.lane;
		const way = { watch: "kubernetes-watch", fifo: "watch-fifo", indexer: "fifo-indexer", handler: "indexer-handler",
			queue: player.before === "backoff" ? "backoff-queue" : "handler-queue", merged: "handler-queue", worker: lane && `lane-${lane.slot}` }[stage];
		if (stage === "watch") this.#light("kubernetes");
		if (way) await fly(way);
		if (lane && stage === "neutron") await this.#request(lane, fly);
		if (lane && stage === "done") await this.#leave("done", lane, fly);
		if (lane && stage === "backoff") await this.#leave("failed", lane, fly);
		this.#pass(moment);
		if (stage === "actual" || stage === "neutron") this.#light("cache");
		if (stage === "done") this.#light("kubernetes");
		if (!lane) return;
		this.#workers.move(lane, moment, this.followed);
		await this.#motion.wait(190 / speed);
		if (stage !== "done" && stage !== "backoff") return;
		this.#workers.leave(lane);
		player.lane = null;
	}

	// leave moves a dot out of the lane of a worker, over the rail of a line.
	#leave(line, lane, fly) {
		const rail = this.#lines[line], at = this.#workers.position(lane), name = `${line}-${lane.slot}`;
		this.#workers.depart(lane);
		this.#lines[name] = rounded([at, [rail[0][0], at[1]], ...rail.slice(1)]);
		return fly(name);
	}

	// request moves a small dot from the lane to Neutron and back.
	async #request(lane, fly) {
		const at = this.#workers.position(lane), there = [at[0], this.#lines.neutron[0][1]];
		this.#lines[`request-${lane.slot}`] = [at, there];
		this.#lines[`response-${lane.slot}`] = [there, at];
		await fly(`request-${lane.slot}`, { small: true, failed: false });
		this.#light("neutron");
		await fly(`response-${lane.slot}`, { small: true });
	}

	// layout draws the lines between the stations, where they are now.
	#layout() {
		const frame = root.getBoundingClientRect();
		if (!frame.width) return;
		const box = (element) => {
			const r = element.getBoundingClientRect();
			return { left: r.left - frame.left, right: r.right - frame.left, top: r.top - frame.top, bottom: r.bottom - frame.top, x: (r.left + r.right) / 2 - frame.left, y: (r.top + r.bottom) / 2 - frame.top };
		};
		const boxes = (select) => Object.fromEntries(Object.entries(stations).map(([stage, element]) => [stage, box(select(element))]));
		const shape = getComputedStyle(root).getPropertyValue("--shape").trim();
		this.#motion.labels = shape !== "narrow";
		const { lines, labels } = routes(shape, frame.width, boxes((element) => element.querySelector(".node")), boxes((element) => element), this.#workers.measure(box));
		this.#lines = lines;
		const paths = Object.entries(lines).map(([name, points]) => {
			const path = svg("path", { class: name.replace(/-\d+$/, ""), d: pathData(points) });
			if (withArrow.has(name)) path.setAttribute("marker-end", "url(#arrow)");
			if (name === "neutron") path.setAttribute("marker-start", "url(#arrow)");
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
