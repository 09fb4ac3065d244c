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

function waitingItem({ key, failures, from, until, followed }) {
	const countdown = Object.assign(create("span", "countdown"), { from });
	countdown.dataset.until = until;
	const item = create("li", followed ? "followed" : "", keyLink(key), create("span", "why", text().waits(failures)), countdown, create("span", "bar"));
	item.dataset.key = key;
	return item;
}

export class Diagram {
	connection = "connecting";
	speed = 1;
	#traffic = new Traffic(stations, (stage, failed) => this.#light(stage, failed));
	#now;
	#state = null;
	#announced = "";
	#explained = null; // the stage that a person points at
	#stages = []; // of a sync

	constructor(now) {
		this.#now = now;
		for (const stage in stations) this.#build(stage);
		this.#setStages([...root.querySelectorAll(".words [data-stage]")].map((element) => element.dataset.stage).slice(1));
		setInterval(() => this.motion.paused || this.#dim(), 100);
		setInterval(() => this.#announce(), 5000);
	}

	get motion() {
		return this.#traffic.motion;
	}

	// build fills the element of a station, which explains itself while a person points at it.
	#build(stage) {
		const element = stations[stage], button = Object.assign(create("button", "name"), { type: "button" });
		const [parts, steps] = ["parts", "steps"].map((name) => element.dataset[name]?.split(" ") ?? []);
		element.prepend(create("h3", "", button), create("span", "node", ...steps.map((step) => create("i", "", step))), ...parts.map((part) => create("p", part)));
		for (const [on, target, type] of [[stage, element, "pointerenter"], [null, element, "pointerleave"], [stage, button, "focus"], [null, button, "blur"]]) {
			target.addEventListener(type, () => {
				this.#explained = on;
				this.headline();
			});
		}
	}

	// setStages shows the stages of a sync: those of the program.
	#setStages(stages) {
		if (stages.join() === this.#stages.join()) return;
		for (const stage of this.#stages.filter((stage) => !stages.includes(stage))) {
			stations[stage].remove();
			delete stations[stage];
		}
		stages.forEach((stage, i) => {
			if (!stations[stage]) {
				stations[stage] = create("section", "station");
				Object.assign(stations[stage].dataset, { stage, steps: stage === "sync" ? "9 10 11" : "" });
				this.#build(stage);
			}
			stations[stage].style.setProperty("--at", i);
			root.querySelector(".words").append(stations[stage]);
		});
		root.style.setProperty("--stages", stages.length);
		this.#stages = stages;
		this.retext();
	}

	set followed(key) {
		this.#traffic.workers.followed = key;
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

	// retext shows everything in the current language.
	retext() {
		for (const [stage, element] of Object.entries(stations)) {
			const [name, explanation] = this.#words(stage);
			setText(element.querySelector(".name"), name);
			element.querySelector(".name").title = explanation;
			for (const step of element.querySelectorAll(".node i")) step.title = text().steps[step.textContent - 1];
		}
		if (this.#state) this.show(this.#state);
		this.headline();
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
		const t = text(), { process, handlers, workers, servers } = state;
		this.#setStages(state.stages);
		root.classList.toggle("standby", !process.leads);
		this.#showInformers(state.informers);
		this.#count("handler", handlers.added + handlers.updated + handlers.deleted);
		setText(stations.handler.querySelector(".more"), t.handlerKinds(handlers, number).join("\n"));
		this.#showQueue(state.queue);
		this.#traffic.show(workers, this.#stages);
		const { lanes } = this.#traffic.workers; // in which a dot may still be on its way
		const busy = workers.filter(({ key }, i) => key || lanes[i]?.key).length;
		this.#count("worker", busy, t.busy(number(busy), number(workers.length)));
		for (const stage of this.#stages) this.#count(stage, workers.filter((worker) => worker.stage === stage).length);
		this.#showServers(servers);
		this.headline();
	}

	#showInformers(informers) {
		const worst = ["waiting", "listing", "watching"].find((a) => informers.some(({ activity }) => activity === a)) ?? "watching";
		stations.watch.dataset.activity = worst;
		if (informers.length === 1) this.#count("watch", informers[0].resourceVersion, "resourceVersion");
		else this.#count("watch", informers.length, text().watchesOpen);
		setText(stations.watch.querySelector(".more"), text().activities[worst]);
		this.#count("indexer", sum(informers, "objects"));
	}

	#showServers(servers) {
		const t = text(), cache = servers.find((server) => server.cache)?.cache, shown = [servers.length > 0, Boolean(cache)].join();
		const requests = sum(servers, "requests");
		this.#count("server", requests, `${unitOf("server", requests)}\n${t.inFlight(sum(servers, "inFlight"), servers.length === 1 && servers[0].limit)}`);
		if (cache) {
			const seconds = Math.max(0, Math.round((this.#now() - new Date(cache.refreshed)) / 1000));
			this.#count("cache", cache.objects, `${cache.text}\n${cache.refreshed ? t.listedAgo(duration(seconds * 1000)) : t.neverListed}`);
		}
		for (const stage of ["server", "cache"]) setText(stations[stage].querySelector(".name"), this.#words(stage)[0]);
		if (outside.dataset.shown === shown) return;
		outside.dataset.shown = shown;
		[outside.hidden, stations.cache.hidden] = [!servers.length, !cache];
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
		const t = text(), { merged, workers } = this.#traffic;
		this.#count("queue", queue.depth, `${unitOf("queue", queue.depth)}\n${t.merged(number(queue.merged))}`);
		const front = queue.front.slice(0, keysAtMost).map((key) => ({ key, merged: merged.get(key) ?? "", followed: key === workers.followed }));
		showList(stations.queue.querySelector(".keys"), front, keyItem);
		const more = queue.depth - front.length;
		setText(stations.queue.querySelector(".more"), more > 0 ? t.moreKeys(number(more)) : "");

		this.#count("backoff", queue.waitingCount);
		const waiting = queue.waiting.slice(0, waitingAtMost).map((item) => ({ ...item, followed: item.key === workers.followed }));
		showList(document.getElementById("backoff"), waiting, waitingItem);
	}

	// summary returns what happens now, as the name of a headline and the facts in it.
	#summary() {
		const s = this.#state;
		if (this.connection !== "open") return [this.connection, {}];
		if (!s) return ["connecting", {}];
		const { depth, waitingCount } = s.queue, { activity } = stations.watch.dataset, busy = s.workers.filter((worker) => worker.key).length;
		const facts = { busy: busy && number(busy), depth: depth && number(depth), waiting: number(waitingCount), objects: stations.indexer.querySelector(".count").textContent, holder: s.process.holder };
		if (activity !== "watching") return [activity, { ...facts, error: s.informers.find(({ lastError }) => lastError)?.lastError }];
		if (!s.process.leads) return ["standby", facts];
		if (busy || depth) return ["working", facts];
		if (this.#traffic.isMoving) return ["moving", facts];
		return [waitingCount ? "failing" : "rest", facts];
	}

	headline() {
		const [kind, facts] = this.#summary(), [name, explanation] = this.#explained ? this.#words(this.#explained) : [text().headline[kind](facts), facts.error || text().hint];
		setText(document.getElementById("headline"), name);
		setText(document.getElementById("explain"), explanation);
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
		element.litUntil = performance.now() + litFor / this.speed;
		element.classList.add("lit");
	}

	#dim() {
		for (const element of Object.values(stations)) {
			if (element.litUntil < performance.now()) element.classList.remove("lit", "failing");
		}
	}
}
