// stream.js: the server-sent events of /api/stream. It connects again after an error.
// In place of it, the page has a Recording, with the same methods, if it is published
// without a controller: see recording.js.
import { api } from "./elements.js";

const silence = 10_000; // milliseconds without an event, after which the connection counts as lost

export class Stream {
	#source;
	#listeners;
	#key = "";
	#connected = "";
	#retry = 0;
	#timer = 0;
	#offset = 0; // of the controller's clock
	#paused = false;

	// The listeners are state, moments, journeys and connection.
	constructor(listeners) {
		this.#listeners = listeners;
	}

	kind = "live";

	// now returns the controller's time in milliseconds.
	now = () => Date.now() + this.#offset;

	// keys returns keys that begin with a text.
	async keys(prefix) {
		const response = await fetch(api("keys", { prefix })).catch(() => null);
		return response?.ok ? response.json() : [];
	}

	get paused() {
		return this.#paused;
	}

	// While it is paused, the stream is closed.
	set paused(paused) {
		this.#paused = paused;
		this.connect(this.#key);
	}

	// connect opens the stream, with the journeys of a key if there is one.
	connect(key) {
		this.#key = key;
		this.#close();
		if (this.#paused) return void this.#lookUp(key);
		const source = this.#source = new EventSource(api("stream", key ? { key } : {}));
		for (const type of ["state", "journeys", "moments"]) {
			source.addEventListener(type, (event) => this.#receive(type, JSON.parse(event.data)));
		}
		source.onerror = () => this.#lost();
		this.#timer = setTimeout(() => this.#lost(), silence);
	}

	#close() {
		clearTimeout(this.#timer);
		this.#source?.close();
	}

	// lookUp shows the journeys of a key that is selected during a pause.
	async #lookUp(key) {
		const response = key && await fetch(api("journeys", { key })).catch(() => null);
		if (response?.ok && key === this.#key) this.#listeners.journeys(await response.json());
	}

	#receive(type, value) {
		clearTimeout(this.#timer);
		this.#timer = setTimeout(() => this.#lost(), silence);
		this.#retry = 0;
		this.#connection("open");
		if (type === "state") this.#offset = new Date(value.time) - Date.now();
		this.#listeners[type](value);
	}

	#connection(to) {
		if (to !== this.#connected) this.#listeners.connection(this.#connected = to);
	}

	// The browser does not connect again after a response with an error, so this does.
	#lost() {
		this.#close();
		this.#connection("lost");
		this.#timer = setTimeout(() => this.connect(this.#key), Math.min(500 * 2 ** this.#retry++, 5000));
	}
}
