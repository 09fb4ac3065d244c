// page.js: connects the stream, the diagram, the journeys and the controls.
//
// Tests and tools may rely on these elements:
//
//	[data-stage="watch|fifo|indexer|handler|queue|worker|desired|actual|plan|apply|report|server|backoff"]
//	    the stations (also "kubernetes", "cache" and other stages of a program): class "lit" for 600 ms when a key
//	    passes, class "failing" with it after a failure, data-count with the number
//	#backoff > li[data-key]         a key that waits, with its time in .countdown
//	#lanes > li.busy[data-worker]   a busy worker, with .key and .step
//	#follow, #journeys > details[data-id], with .copy; #namespace/name/ID in the address opens one
//	#connection[data-state="connecting|open|lost"]
//	#pause[aria-pressed], #theme, #language, #headline, #controller
//	#tour, of a recording only: #steps button[aria-current], #position, #speed, #lesson
import { Diagram } from "./diagram.js";
import { followed, Journeys } from "./journeys.js";
import { Recording } from "./recording.js";
import { Stream } from "./stream.js";
import { setText, showCountdowns } from "./elements.js";
import { duration, language, setLanguage, text } from "./texts.js";
import { Tour } from "./tour.js";

const $ = (id) => document.getElementById(id);
let last = null;

// docs/watch has a recording in place of a stream.
const isRecorded = document.documentElement.dataset.source === "recording";
const stream = new (isRecorded ? Recording : Stream)({
	state(state) {
		last = state;
		diagram.show(state);
		showProcess(state);
		showControllers(state);
		showCountdowns(stream.now());
	},
	moments: (moments) => diagram.play(moments),
	journeys(list) {
		journeys.show(list);
		showCountdowns(stream.now());
	},
	connection(to) {
		diagram.connection = to;
		diagram.headline();
		showControls();
	},
	reset: () => diagram.clear(),
	position: () => tour.show(),
});
const diagram = new Diagram(stream.now);
const journeys = new Journeys(stream.keys);
const tour = isRecorded && new Tour(stream, (speed) => diagram.speed = diagram.motion.speed = stream.speed = speed);

function showProcess({ process, time, servers }) {
	const t = text(), age = duration(1000 * Math.round((new Date(time) - new Date(process.started)) / 1000));
	const instances = servers.filter(({ instance }) => instance).map(({ name, instance }) => `${name}: ${instance}`);
	setText(document.querySelector("h1"), process.name || t.page);
	document.title = process.name ? `${t.page}: ${process.name}` : t.page;
	setText($("process"), [t.process(process.version, age), ...instances].join(t.comma));
	$("process").dataset.version = process.version;
}

// showControllers lets a person choose between the controllers of the process.
function showControllers({ controllers, controller }) {
	$("controller-control").hidden = controllers.length < 2;
	if (controllers.length !== $("controller").length) $("controller").replaceChildren(...controllers.map((name) => new Option(name)));
	if (document.activeElement !== $("controller")) $("controller").value = controller;
}

const darkByDefault = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (localStorage.getItem("theme") ?? (darkByDefault.matches ? "dark" : "light")) === "dark";

function showControls() {
	const t = text(), { connection } = diagram;
	$("connection").dataset.state = connection;
	setText($("connection"), connection === "open" ? stream.paused ? t.paused : t[stream.kind] : t[connection]);
	$("pause").setAttribute("aria-pressed", stream.paused);
	setText($("pause"), stream.paused ? t.resume : t.pause);
	document.documentElement.dataset.theme = isDark() ? "dark" : "light";
	setText($("theme"), isDark() ? t.light : t.dark);
	setText($("language"), t.language);
	$("language").lang = language() === "en" ? "zh-CN" : "en";
}

function retext() {
	setLanguage();
	diagram.retext();
	journeys.show();
	if (tour) tour.retext();
	if (last) showProcess(last);
	showControls();
}

function follow() {
	const at = followed();
	diagram.followed = at.key;
	journeys.follow(at);
	stream.connect(at.key);
}

$("pause").addEventListener("click", () => {
	diagram.motion.paused = stream.paused = !stream.paused;
	showControls();
});
$("theme").addEventListener("click", () => {
	localStorage.setItem("theme", isDark() ? "light" : "dark");
	showControls();
});
darkByDefault.addEventListener("change", showControls);
$("language").addEventListener("click", () => {
	setLanguage(language() === "en" ? "zh-CN" : "en");
	retext();
});
$("controller").addEventListener("change", () => {
	location.href = "?controller=" + encodeURIComponent($("controller").value);
});
addEventListener("hashchange", follow);
setInterval(() => stream.paused || showCountdowns(stream.now()), 200);

retext();
follow();
