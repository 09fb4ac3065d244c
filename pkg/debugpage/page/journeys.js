// journeys.js: follow one key. A combobox selects the key, and a timeline shows each of
// its journeys, the newest first.
import { create, keyLink, setText } from "./elements.js";
import { clockTime, duration, number, text } from "./texts.js";

const shownAtMost = 20;
const input = document.getElementById("follow");
const list = document.getElementById("suggestions");
const panel = document.getElementById("journeys");

// followedKey returns the key in the address, or nothing if it is malformed.
export function followedKey() {
	try {
		return decodeURIComponent(location.hash.slice(1));
	} catch {
		return "";
	}
}

export class Journeys {
	#now;
	#key = "";
	#journeys = [];
	#opened = new Map(); // ID of a journey → whether a person opened or closed it
	#shown = new Map(); // ID of a journey → its element, and the version that it shows
	#begin; // of the journey that is being rendered
	#typing = 0;

	constructor(now) {
		this.#now = now;
		input.addEventListener("input", () => {
			clearTimeout(this.#typing);
			this.#typing = setTimeout(() => this.#suggest(), 150);
		});
		input.addEventListener("focus", () => this.#suggest());
		input.addEventListener("blur", () => this.#close());
		input.addEventListener("keydown", (event) => this.#onKey(event));
		list.addEventListener("pointerdown", (event) => {
			event.preventDefault(); // keep the focus
			if (event.target.role === "option") this.#select(event.target.textContent);
		});
		document.getElementById("unfollow").addEventListener("click", () => {
			location.hash = "";
			input.focus();
		});
		setInterval(() => this.#countDown(), 200);
	}

	follow(key) {
		if (key !== this.#key) this.#opened.clear();
		this.#key = key;
		input.value = key;
		document.getElementById("unfollow").hidden = !key;
		this.show([]);
	}

	async #keys(prefix) {
		const response = await fetch("api/keys?prefix=" + encodeURIComponent(prefix)).catch(() => null);
		return response?.ok ? await response.json() : [];
	}

	// offerKeys shows links to some keys, while none is followed.
	async #offerKeys() {
		const keys = await this.#keys("");
		panel.querySelector(".picks")?.remove();
		if (!this.#key && keys.length) panel.append(create("p", "picks", ...keys.slice(0, 8).map(keyLink)));
	}

	async #suggest() {
		const prefix = input.value.trim(), keys = await this.#keys(prefix);
		if (document.activeElement !== input || prefix !== input.value.trim()) return;
		list.replaceChildren(...keys.map((key, i) => Object.assign(create("li", "", key), { role: "option", id: `suggestion-${i}` })));
		list.hidden = keys.length === 0;
		input.setAttribute("aria-expanded", keys.length > 0);
		input.removeAttribute("aria-activedescendant");
	}

	#close() {
		list.hidden = true;
		input.setAttribute("aria-expanded", "false");
		input.removeAttribute("aria-activedescendant");
	}

	#select(key) {
		this.#close();
		location.hash = key;
	}

	#onKey(event) {
		const options = [...list.children], selected = options.findIndex((option) => option.ariaSelected === "true");
		if (event.key === "Escape") return this.#close();
		if (event.key === "Enter") return this.#select(!list.hidden && selected >= 0 ? options[selected].textContent : input.value.trim());
		const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
		if (!step) return;
		event.preventDefault();
		if (list.hidden) return void this.#suggest();
		const next = selected < 0 && step < 0 ? options.length - 1 : (selected + step + options.length) % options.length;
		options.forEach((option, i) => option.ariaSelected = i === next);
		options[next].scrollIntoView({ block: "nearest" });
		input.setAttribute("aria-activedescendant", options[next].id);
	}

	// show displays the journeys of the followed key.
	show(journeys) {
		this.#journeys = journeys.slice(0, shownAtMost);
		if (!this.#key || !journeys.length) {
			panel.replaceChildren(create("p", "empty", this.#key ? text().noJourneys(this.#key) : text().followHint));
			if (!this.#key) this.#offerKeys();
			return;
		}
		// What did not change stays, so that it keeps the focus.
		const focused = document.activeElement.closest?.("details")?.dataset.id, old = this.#shown;
		this.#shown = new Map(this.#journeys.map((journey, i) => {
			const version = JSON.stringify([journey, i === 0, document.documentElement.lang]), before = old.get(journey.id);
			return [journey.id, before?.version === version ? before : { version, element: this.#journey(journey, i) }];
		}));
		const elements = [...this.#shown.values()].map((shown) => shown.element);
		if (elements.length !== panel.children.length || elements.some((element, i) => element !== panel.children[i])) {
			panel.replaceChildren(...elements);
			panel.querySelector(`[data-id="${CSS.escape(focused ?? "")}"] summary`)?.focus({ preventScroll: true });
		}
		this.#countDown();
	}

	retext() {
		this.show(this.#journeys);
	}

	#journey(journey, i) {
		const t = text(), end = new Date(journey.ended ?? this.#now()), begin = this.#begin = new Date(journey.causes[0]?.time ?? journey.queued);
		const outcome = journey.ended ? journey.outcome || t.succeeded : journey.taken ? t.running : t.waitsForWorker;
		const summary = create("summary", "", create("span", "sign"), create("time", "", clockTime(begin)),
			create("span", "outcome", outcome), create("span", "total", journey.ended && duration(end - begin)));
		const timeline = create("ol", "timeline", ...this.#causes(journey), ...this.#stages(journey, end), ...this.#ending(journey));
		const details = create("details", journey.failed ? "journey failed" : journey.ended ? "journey" : "journey running", summary, timeline);
		details.dataset.id = journey.id;
		details.open = this.#opened.get(journey.id) ?? i === 0;
		summary.addEventListener("click", () => this.#opened.set(journey.id, !details.open));
		return details;
	}

	// entry returns a line of a timeline, with the time since the first event.
	#entry(className, time, title, ...more) {
		const when = create("time", "", time && "+" + duration(Math.max(0, new Date(time) - this.#begin)));
		if (time) when.title = clockTime(time);
		return create("li", className, when, create("div", "", create("strong", "", title), ...more));
	}

	#causes(journey) {
		const t = text(), shown = journey.causes.slice(-5);
		const entries = shown.map((cause) => this.#entry("cause", cause.time, t.causes[cause.type] ?? cause.type,
			create("span", "aside", [cause.changed && t.changed(cause.changed), cause.resourceVersion && t.version(cause.resourceVersion)].filter(Boolean).join(", "))));
		if (journey.causeCount > 1) {
			const earlier = journey.causeCount - shown.length;
			entries.push(this.#entry("merged", "", t.merge(number(journey.causeCount)), earlier > 0 && create("span", "aside", t.olderCauses(number(earlier)))));
		}
		return entries;
	}

	#stages(journey, end) {
		const t = text(), entries = [this.#entry("queued", journey.queued, t.queued)];
		if (!journey.taken) return entries;
		entries.push(this.#entry("taken", journey.taken, t.taken(journey.worker), create("span", "aside", t.wait(duration(new Date(journey.taken) - new Date(journey.queued))))));
		if (journey.desired) entries.push(this.#entry("", "", t.desired, create("span", "words", journey.desired)));
		if (journey.actual) entries.push(this.#entry("", "", t.actual, create("span", "words", journey.actual)));
		for (const step of journey.steps ?? []) {
			const entry = this.#entry(step.error ? "step failed" : "step", step.begun, step.text, create("span", "aside", duration(step.milliseconds)), ...(step.requests ?? []).map((request) => this.#request(request, journey, end)));
			if (step.error) entry.lastChild.append(create("p", "error", step.error));
			entries.push(entry);
		}
		return entries;
	}

	// request shows a request with a bar for its part of the sync.
	#request(request, journey, end) {
		const from = new Date(journey.taken), all = Math.max(1, end - from);
		const bar = create("span", "bar", create("i"));
		bar.firstChild.style.left = `${Math.min(99, Math.max(0, 100 * (new Date(request.begun) - from) / all))}%`;
		bar.firstChild.style.width = `${Math.min(100, Math.max(1, 100 * request.milliseconds / all))}%`;
		return create("span", "request", create("span", "", `${request.server}: ${request.operation}`),
			create("span", "code", request.code ? String(request.code) : text().noCode), create("span", "ms", duration(request.milliseconds)), bar);
	}

	#ending(journey) {
		const t = text(), entries = [];
		if (journey.ended) entries.push(this.#entry(journey.failed ? "outcome failed" : "outcome", journey.ended, journey.failed ? t.failed : t.succeeded, create("span", "words", journey.outcome)));
		if (journey.retry) {
			const countdown = create("span", "countdown");
			countdown.dataset.until = journey.retry.until;
			entries.push(this.#entry("retry", "", t.retry, countdown, journey.retry.failures > 0 && create("span", "aside", t.retryFailures(number(journey.retry.failures)))));
		}
		return entries;
	}

	#countDown() {
		for (const countdown of panel.querySelectorAll(".countdown")) {
			const left = new Date(countdown.dataset.until) - this.#now();
			setText(countdown, left > 0 ? text().inSeconds((left / 1000).toFixed(left < 10e3 ? 1 : 0)) : clockTime(countdown.dataset.until));
		}
	}
}
