// journeys.js: follow one key. An input selects the key, and a timeline shows each of its
// journeys, the newest first.
import { addressOf, create, setText, showList } from "./elements.js";
import { clockTime, duration, number, text } from "./texts.js";

const input = document.getElementById("follow");
const list = document.getElementById("suggestions");
const panel = document.getElementById("journeys");

// followed returns the key in the address, #namespace/name or #/name, and the journey, if its ID
// is there, too. They are empty if the address is malformed.
export function followed() {
	try {
		const [, key = "", id = ""] = /^([^/]*\/[^/]+)(?:\/([^/]+))?$/.exec(location.hash.slice(1)) ?? [];
		return { key: decodeURIComponent(key).replace(/^\//, ""), id: decodeURIComponent(id) };
	} catch {
		return { key: "", id: "" };
	}
}

// asText returns what the page shows of a journey, for a bug report.
function asText(details) {
	const words = (element) => [...element.children].map((part) => (part.matches(".request, .error") ? "\n\t" : "") + (words(part) || part.textContent)).filter(Boolean).join("  ").replaceAll("  \n", "\n");
	const lines = [...details.querySelectorAll(".timeline li")].map((line) => `${line.firstChild.textContent.padStart(9)}  ${words(line.lastChild)}`);
	const { begun, key, id } = details.dataset, outcome = details.querySelector(".outcome").textContent;
	return [document.querySelector("h1").textContent + " " + document.getElementById("process").dataset.version, `${begun}  ${key} (${id})`, outcome, ...lines, ""].join("\n");
}

export class Journeys {
	#source;
	#key = "";
	#journeys = [];
	#id = ""; // of the journey in the address
	#opened = new Map(); // ID of a journey → whether a person opened or closed it
	#begin; // of the journey that is being rendered
	#typing = 0;

	// The source has the controller's time, now, and its keys.
	constructor(source) {
		this.#source = source;
		input.addEventListener("input", (event) => {
			clearTimeout(this.#typing);
			if (event.inputType === "insertReplacementText") this.#select(); // one of the suggestions
			else this.#typing = setTimeout(() => this.#suggest(), 150);
		});
		input.addEventListener("focus", () => this.#suggest());
		input.addEventListener("keydown", (event) => event.key === "Enter" && this.#select());
		document.getElementById("unfollow").addEventListener("click", () => {
			location.hash = "";
			input.focus();
		});
		setInterval(() => this.#countDown(), 200);
	}

	follow({ key, id }) {
		this.#opened.clear();
		[this.#key, this.#id] = [key, id];
		input.value = key;
		document.getElementById("unfollow").hidden = !key;
		this.show([]);
	}

	async #suggest() {
		const typed = input.value.trim(), keys = await this.#source.keys(typed);
		if (typed === input.value.trim()) list.replaceChildren(...keys.map((key) => new Option("", key)));
	}

	#select() {
		const key = input.value.trim();
		const known = [...list.children].some((option) => option.value === key);
		location.hash = !key ? "" : key.includes("/") || known ? addressOf(key.replace(/^\//, "")) : "default/" + key; // as with kubectl
	}

	// show displays the journeys of the followed key.
	show(journeys) {
		this.#journeys = journeys;
		const words = this.#key ? text().noJourneys(this.#key) : text().followHint, inAddress = journeys.some(({ id }) => id === this.#id);
		showList(panel, this.#key ? journeys : [], (journey) => this.#journey(journey), words, (words) => create("p", "empty", words));
		setText(document.getElementById("lost"), this.#id && journeys.length && !inAddress ? text().journeyGone(this.#id) : "");
		[...panel.querySelectorAll("details")].forEach((details, i) => {
			details.open = this.#opened.get(details.dataset.id) ?? (inAddress ? details.dataset.id === this.#id : i === 0);
		});
		this.#countDown();
	}

	retext() {
		this.show(this.#journeys);
	}

	#journey(journey) {
		const t = text(), end = new Date(journey.ended ?? this.#source.now()), begin = this.#begin = new Date(journey.causes[0]?.time ?? journey.queued);
		const outcome = journey.ended ? journey.outcome || t.succeeded : journey.taken ? t.running : t.waitsForWorker;
		const summary = create("summary", "", create("span", "sign"), create("time", "", clockTime(begin)),
			create("span", "outcome", outcome), create("span", "total", journey.ended && duration(end - begin)));
		const timeline = create("ol", "timeline", ...this.#causes(journey), ...this.#stages(journey, end), ...this.#ending(journey));
		const copy = Object.assign(create("button", "copy", t.copy), { type: "button" });
		const details = create("details", journey.failed ? "journey failed" : journey.ended ? "journey" : "journey running", summary, copy, timeline);
		Object.assign(details.dataset, { id: journey.id, key: journey.key, begun: begin.toISOString() });
		summary.addEventListener("click", () => {
			this.#opened.set(journey.id, !details.open);
			if (!details.open && journey.taken) history.replaceState(null, "", `#${addressOf(journey.key)}/${journey.id}`);
		});
		copy.addEventListener("click", () => navigator.clipboard.writeText(asText(details)).then(() => setText(copy, t.copied), () => setText(copy, t.notCopied)));
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
		for (const { stage, text } of journey.found ?? []) entries.push(this.#entry("", "", t.found[stage] ?? stage, create("span", "words", text)));
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
			const left = new Date(countdown.dataset.until) - this.#source.now();
			setText(countdown, left > 0 ? text().inSeconds((left / 1000).toFixed(left < 10e3 ? 1 : 0)) : clockTime(countdown.dataset.until));
		}
	}
}
