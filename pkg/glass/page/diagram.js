// diagram.js: the stations with their numbers and lights, and the sentence that
// describes what happens now.
import { duration, number, text, unitOf } from "./texts.js";
import { create, keyLink, setText, showList } from "./elements.js";
import { Traffic } from "./traffic.js";

const litFor = 600; // milliseconds
const keysAtMost = 4; // keys in the queue that have a line of their own
const waitingAtMost = 6; // keys in the backoff
const root = document.getElementById("diagram");
const stations = Object.fromEntries([...root.querySelectorAll("[data-stage]")].map((element) => [element.dataset.stage, element]));
const outside = root.querySelector(".servers");
const sum = (list, field) => list.reduce((total, item) => total + item[field], 0);

function keyItem({ key, merged, followed }) {
	const item = create("li", followed ? "followed" : "", keyLink(key));
	item.dataset.merged = merged;
	return item;
}

function waitingItem(waiting) {
	const why = create("span", "why", text().waits(waiting.failures));
	const item = create("li", waiting.followed ? "followed" : "", keyLink(waiting.key), why, create("span", "countdown"), create("span", "bar"));
	item.dataset.key = waiting.key;
	return Object.assign(item, { waiting });
}

export class Diagram {
	#traffic = new Traffic(stations, (stage, failed) => this.#light(stage, failed));
	#now;
	#state = null;
	#connection = "connecting";
	#announced = "";
	#speed = 1;
	#explained = null; // the stage that a person points at
	#stages = []; // of a sync

	constructor(now) {
		this.#now = now;
		for (const stage in stations) this.#build(stage);
		this.#setStages([...root.querySelectorAll(".words [data-stage]")].map((element) => element.dataset.stage).slice(1));
		setInterval(() => this.#traffic.paused || this.#countDown(), 200);
		setInterval(() => this.#dim(), 100);
		setInterval(() => this.#announce(), 5000);
	}

	// build fills the element of a station.
	#build(stage) {
		const element = stations[stage], button = Object.assign(create("button", "name"), { type: "button" });
		const [parts, steps] = ["parts", "steps"].map((name) => element.dataset[name]?.split(" ") ?? []);
		element.prepend(create("h3", "", button), create("span", "node", ...steps.map((step) => create("i", "", step))), ...parts.map((part) => create("p", part)));
		this.#explainOn(stage, button, element);
	}

	// setStages shows the stages of a sync: those of the program.
	#setStages(stages) {
		if (stages.join() === this.#stages.join()) return;
		for (const stage of this.#stages.filter((stage) => !stages.includes(stage))) {
			stations[stage].remove();
			delete stations[stage];
		}
		const words = root.querySelector(".words");
		stages.forEach((stage, i) => {
			if (!stations[stage]) {
				stations[stage] = create("section", "station");
				Object.assign(stations[stage].dataset, { stage, steps: stage === "sync" ? "9 10 11" : "" });
				this.#build(stage);
			}
			stations[stage].style.setProperty("--at", i);
			words.append(stations[stage]);
		});
		root.style.setProperty("--stages", stages.length);
		this.#stages = stages;
		this.#traffic.stages = stages;
		this.retext();
	}

	set paused(paused) {
		this.#traffic.paused = paused;
	}

	set speed(speed) {
		this.#speed = this.#traffic.speed = speed;
	}

	set followed(key) {
		this.#traffic.followed = key;
		if (this.#state) this.show(this.#state);
	}

	play(moments) {
		this.#traffic.play(moments);
	}

	// clear removes what is on its way, because the time is another one now.
	clear() {
		this.#traffic.clear();
		for (const element of Object.values(stations)) element.classList.remove("lit", "failing");
	}

	set connection(connection) {
		this.#connection = connection;
		if (connection === "broken") this.#state = null;
		this.#headline();
	}

	// retext shows everything in the current language.
	retext() {
		for (const [stage, element] of Object.entries(stations)) {
			const [name, explanation] = this.#words(stage);
			setText(element.querySelector(".name"), name);
			element.querySelector(".name").title = explanation;
			for (const step of element.querySelectorAll(".node i")) step.title = text().steps[step.textContent - 1];
		}
		if (this.#state) this.show(this.#state);
		this.#headline();
		this.#traffic.layout();
	}

	// words returns the name of a station, and what it does.
	#words(stage) {
		const servers = this.#state?.servers ?? [], cached = servers.find((server) => server.cache);
		const [name, , explanation] = text().stations[stage] ?? [stage, "", ""];
		if (stage === "server") return [servers.map((server) => server.name).join(", "), explanation];
		return [stage === "cache" && cached ? text().cacheOf(cached.name) : name, explanation];
	}

	// show displays a state. Dots on their way are not affected.
	show(state) {
		this.#state = state;
		const t = text(), own = state.informers.filter((i) => i.resource === state.informers[0].resource);
		this.#setStages(state.stages);
		root.classList.toggle("standby", !state.process.leads);
		const worst = ["waiting", "listing", "watching"].find((a) => own.some((i) => i.activity === a)) ?? "watching";
		stations.watch.dataset.activity = worst;
		const one = own.length === 1;
		this.#count("watch", one ? own[0].resourceVersion : own.length, one ? "resourceVersion" : t.watchesOpen);
		setText(stations.watch.querySelector(".more"), t.activities[worst]);
		this.#count("indexer", sum(own, "objects"));
		const h = state.handlers;
		this.#count("handler", h.added + h.updated + h.deleted);
		setText(stations.handler.querySelector(".more"), t.handlerKinds(h, number).join("\n"));
		this.#showQueue(state.queue);
		for (const stage of this.#stages) this.#count(stage, state.workers.filter((w) => w.stage === stage).length);
		const busy = this.#traffic.show(state.workers);
		this.#count("worker", busy, t.busy(number(busy), number(state.workers.length)));
		this.#showServers(state.servers);
		this.#countDown();
		this.#headline();
	}

	#showServers(servers) {
		const shown = [servers.length > 0, servers.some((server) => server.cache)].join();
		const requests = servers.reduce((total, server) => total + sum(server.operations, "count"), 0);
		this.#count("server", requests, `${unitOf("server", requests)}\n${text().inFlight(sum(servers, "inFlight"), servers.length === 1 && servers[0].limit)}`);
		for (const stage of ["server", "cache"]) setText(stations[stage].querySelector(".name"), this.#words(stage)[0]);
		if (outside.dataset.shown === shown) return;
		outside.dataset.shown = shown;
		[outside.hidden, stations.cache.hidden] = [!servers.length, !servers.some((server) => server.cache)];
		this.#traffic.layout();
	}

	#count(stage, value, unit) {
		const element = stations[stage];
		if (element.dataset.count !== String(value)) element.dataset.count = value;
		const count = element.querySelector(".count");
		if (count) setText(count, typeof value === "string" ? value : number(value));
		count?.classList.toggle("long", count.textContent.length > 5);
		const words = unit ?? (text().stations[stage] && unitOf(stage, value));
		if (words) setText(element.querySelector(".unit"), words);
	}

	#showQueue(queue) {
		this.#count("queue", queue.depth, `${unitOf("queue", queue.depth)}\n${text().merged(number(queue.merged))}`);
		const followed = this.#traffic.followed;
		const front = queue.front.slice(0, keysAtMost).map((key) => ({ key, merged: this.#traffic.merged.get(key) ?? "", followed: key === followed }));
		showList(stations.queue.querySelector(".keys"), front, keyItem);
		const more = queue.depth - front.length;
		setText(stations.queue.querySelector(".more"), more > 0 ? text().moreKeys(number(more)) : "");

		this.#count("backoff", queue.waitingCount);
		const waiting = queue.waiting.slice(0, waitingAtMost).map((item) => ({ ...item, followed: item.key === followed }));
		showList(document.getElementById("backoff"), waiting, waitingItem);
	}

	// countDown shows how long each key waits, and how old the cache is.
	#countDown() {
		const state = this.#state;
		if (!state) return;
		for (const item of document.getElementById("backoff").children) {
			const { from, until } = item.waiting, left = new Date(until) - this.#now();
			setText(item.querySelector(".countdown"), left > 50 ? text().inSeconds((left / 1000).toFixed(left < 10e3 ? 1 : 0)) : text().now);
			item.style.setProperty("--left", Math.max(0, Math.min(1, left / (new Date(until) - new Date(from) || 1))).toFixed(3));
		}
		const t = text(), cache = state.servers.find((server) => server.cache)?.cache;
		if (!cache) return;
		const age = cache.refreshed ? t.listedAgo(duration(Math.max(0, Math.round((this.#now() - new Date(cache.refreshed)) / 1000) * 1000))) : t.neverListed;
		this.#count("cache", cache.objects, `${cache.text}\n${age}`);
	}

	// explainOn shows what a station does while a person points at it.
	#explainOn(stage, button, element) {
		const explain = (on) => () => {
			this.#explained = on ? stage : null;
			this.#headline();
		};
		element.addEventListener("pointerenter", explain(true));
		element.addEventListener("pointerleave", explain(false));
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
		if (this.#traffic.isMoving) return ["moving", facts];
		return [s.queue.waitingCount ? "failing" : "rest", facts];
	}

	#headline() {
		const [kind, facts] = this.#summary(), t = text();
		setText(document.getElementById("headline"), this.#explained ? this.#words(this.#explained)[0] : t.headline[kind](facts));
		setText(document.getElementById("explain"), this.#explained ? this.#words(this.#explained)[1] : t.hint);
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
		element.litUntil = performance.now() + litFor / this.#speed;
		element.classList.add("lit");
	}

	#dim() {
		if (this.#traffic.paused) return;
		for (const element of Object.values(stations)) {
			if (element.litUntil < performance.now()) element.classList.remove("lit", "failing");
		}
	}
}
