// journeys.js: follow one key. An input selects the key, and a timeline shows each of its
// journeys, the newest first.
import { addressOf, create, setText, showList } from "./elements.js";
import { clockTime, duration, number, text } from "./texts.js";

const input = document.getElementById("follow");
const list = document.getElementById("suggestions");
const panel = document.getElementById("journeys");
const hidden = new Set(["plan", "sync", "report", "done", "backoff"]); // stages that other lines have

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
	const words = ({ children }) => [...children].map((part) => part.textContent).filter(Boolean).join("  ");
	const lines = [...details.querySelectorAll(".timeline li")].map((line) => `${line.firstChild.textContent.padStart(9)}  ${words(line.lastChild)}`);
	const { begun, key, id } = details.dataset, outcome = details.querySelector(".outcome").textContent;
	const program = document.querySelector("h1").textContent + " " + document.getElementById("process").dataset.version;
	return [program, `${begun}  ${key} (${id})`, outcome, ...lines, ""].join("\n");
}

const aside = (words) => words && create("span", "aside", words);

// entry returns a line of a timeline, with the time since the first event.
function entry(className, time, begun, title, ...more) {
	const when = create("time", "", time && "+" + duration(Math.max(0, new Date(time) - begun)));
	if (time) when.title = clockTime(time);
	return create("li", className, when, create("div", "", create("strong", "", title), ...more));
}

// request returns a line with a bar for its part of the sync.
function request({ text, time, milliseconds }, journey, begun) {
	const of = (ms) => 100 * ms / Math.max(1, new Date(journey.ended ?? time) - begun);
	const bar = create("span", "bar", create("i")), from = new Date(time) - begun - milliseconds;
	bar.firstChild.style.left = `${Math.min(99, Math.max(0, of(from)))}%`;
	bar.firstChild.style.width = `${Math.min(100, Math.max(1, of(milliseconds)))}%`;
	return create("li", "request", create("time"), create("div", "", create("span", "", text), create("span", "ms", duration(milliseconds)), bar));
}

// line returns a moment as a line of a timeline, unless another line has it.
function line(moment, journey, begun) {
	const t = text(), { stage, time, milliseconds } = moment;
	if (stage === "queue" || stage === "merged") {
		const [cause, details] = moment.text.split(/[:,] (.*)/);
		return entry("queued", time, begun, t.causes[cause] ?? cause, aside(details));
	}
	if (stage === "worker") return entry("taken", time, begun, t.taken(moment.worker), aside(t.wait(duration(new Date(time) - begun))));
	if (stage === "apply" && moment.failed) return entry("step failed", time, begun, t.failed, create("span", "error", moment.text));
	if (stage === "apply") return entry("step", time, begun, moment.text, aside(milliseconds && duration(milliseconds)));
	if (stage === "kubernetes" || stage === "server") return request(moment, journey, begun);
	if (!moment.text || hidden.has(stage)) return null;
	return entry("", "", begun, t.found[stage] ?? stage, create("span", "words", moment.text));
}

// lines returns all lines of a journey.
function lines(journey, begun) {
	const t = text(), { adds, ended, failed, retry } = journey, isCause = ({ stage }) => stage === "queue" || stage === "merged";
	const causes = journey.moments.filter(isCause), more = adds - causes.length;
	const found = causes.map((moment) => line(moment, journey, begun));
	if (adds > 1) found.push(entry("merged", "", begun, t.merge(number(adds)), aside(more > 0 && t.moreCauses(number(more)))));
	found.push(...journey.moments.filter((moment) => !isCause(moment)).map((moment) => line(moment, journey, begun)).filter(Boolean));
	if (ended) found.push(entry(failed ? "outcome failed" : "outcome", ended, begun, failed ? t.failed : t.succeeded, create("span", "words", journey.outcome)));
	if (retry) {
		const countdown = create("span", "countdown");
		countdown.dataset.until = retry.until;
		found.push(entry("retry", "", begun, t.retry, countdown, aside(retry.failures > 0 && t.retryFailures(number(retry.failures)))));
	}
	return found;
}

export class Journeys {
	#keys;
	#key = "";
	#journeys = [];
	#id = ""; // of the journey in the address
	#opened = new Map(); // ID of a journey → whether a person opened or closed it
	#typing = 0;

	// keys returns the keys that begin with a text.
	constructor(keys) {
		this.#keys = keys;
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
	}

	follow({ key, id }) {
		this.#opened.clear();
		[this.#key, this.#id] = [key, id];
		input.value = key;
		document.getElementById("unfollow").hidden = !key;
		this.show([]);
	}

	async #suggest() {
		const typed = input.value.trim(), keys = await this.#keys(typed);
		if (typed === input.value.trim()) list.replaceChildren(...keys.map((key) => new Option("", key)));
	}

	#select() {
		const key = input.value.trim();
		const known = [...list.children].some((option) => option.value === key);
		location.hash = !key ? "" : key.includes("/") || known ? addressOf(key.replace(/^\//, "")) : "default/" + key; // as with kubectl
	}

	// show displays the journeys of the followed key.
	show(journeys = this.#journeys) {
		this.#journeys = journeys;
		const words = this.#key ? text().noJourneys(this.#key) : text().followHint, inAddress = journeys.some(({ id }) => id === this.#id);
		if (this.#key && journeys.length) showList(panel, journeys, (journey) => this.#journey(journey));
		else showList(panel, [words], () => create("p", "empty", words));
		setText(document.getElementById("lost"), this.#id && journeys.length && !inAddress ? text().journeyGone(this.#id) : "");
		[...panel.querySelectorAll("details")].forEach((details, i) => {
			details.open = this.#opened.get(details.dataset.id) ?? (inAddress ? details.dataset.id === this.#id : i === 0);
		});
	}

	#journey(journey) {
		const t = text(), { id, key, ended, failed, moments } = journey, begun = new Date(moments[0]?.time ?? Date.now());
		const outcome = ended ? journey.outcome || t.succeeded : id === "pending" ? t.waitsForWorker : t.running;
		const summary = create("summary", "", create("span", "sign"), create("time", "", clockTime(begun)),
			create("span", "outcome", outcome), create("span", "total", ended && duration(new Date(ended) - begun)));
		const copy = Object.assign(create("button", "copy", t.copy), { type: "button" });
		const details = create("details", failed ? "journey failed" : ended ? "journey" : "journey running",
			summary, copy, create("ol", "timeline", ...lines(journey, begun)));
		Object.assign(details.dataset, { id, key, begun: begun.toISOString() });
		summary.addEventListener("click", () => {
			this.#opened.set(id, !details.open);
			if (!details.open && id !== "pending") history.replaceState(null, "", `#${addressOf(key)}/${id}`);
		});
		const say = (words) => () => setText(copy, words);
		copy.addEventListener("click", () => navigator.clipboard.writeText(asText(details)).then(say(t.copied), say(t.notCopied)));
		return details;
	}
}
