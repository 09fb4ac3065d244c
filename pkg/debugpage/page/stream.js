// stream.js: the server-sent events of /api/stream. It connects again after an error,
// and keeps a bounded number of events while the page is paused.

const kept = 2000; // moments, while paused
const silence = 10_000; // milliseconds without an event, after which the connection counts as lost

export class Stream {
	#source;
	#listeners;
	#key = "";
	#buffer = null; // the moments since the pause, or null
	#latest = {}; // the last state and journeys since the pause
	#isNewKey = false; // its journeys are shown also while paused
	#connected = "";
	#retry = 0;
	#timers = [];
	#offset = 0; // of the controller's clock

	// The listeners are state, moments, journeys, connection and buffered.
	constructor(listeners) {
		this.#listeners = listeners;
	}

	// now returns the controller's time in milliseconds.
	now = () => Date.now() + this.#offset;

	get paused() {
		return this.#buffer !== null;
	}

	// connect opens the stream, with the journeys of a key if there is one.
	connect(key = this.#key) {
		if (key !== this.#key) {
			this.#isNewKey = true;
			delete this.#latest.journeys;
		}
		this.#key = key;
		this.#timers.forEach(clearTimeout);
		this.#source?.close();
		const source = this.#source = new EventSource("api/stream" + (key ? "?key=" + encodeURIComponent(key) : ""));
		const receive = (type, handle) => source.addEventListener(type, (event) => {
			this.#alive();
			handle(JSON.parse(event.data));
		});
		receive("state", (state) => {
			this.#offset = new Date(state.time) - Date.now();
			this.#deliver("state", state);
		});
		receive("journeys", (journeys) => this.#deliver("journeys", journeys));
		receive("moments", (moments) => {
			if (!this.#buffer) return this.#listeners.moments(moments);
			this.#buffer.push(...moments);
			if (this.#buffer.length > kept) this.#buffer.splice(0, this.#buffer.length - kept);
			this.#listeners.buffered(this.#buffer.length);
		});
		source.onerror = () => this.#lost();
		this.#timers = [setTimeout(() => this.#lost(), silence)];
	}

	#deliver(type, value) {
		if (this.#buffer && !(type === "journeys" && this.#isNewKey)) this.#latest[type] = value;
		else this.#listeners[type](value);
		if (type === "journeys") this.#isNewKey = false;
	}

	#connection(to) {
		if (to !== this.#connected) this.#listeners.connection(this.#connected = to);
	}

	#alive() {
		this.#retry = 0;
		this.#timers.forEach(clearTimeout);
		this.#timers = [setTimeout(() => this.#lost(), silence)];
		this.#connection("open");
	}

	// The browser does not connect again after a response with an error, so this does.
	#lost() {
		this.#source.close();
		this.#connection("lost");
		this.#timers.forEach(clearTimeout);
		this.#timers = [setTimeout(() => this.connect(), Math.min(500 * 2 ** this.#retry++, 5000))];
	}

	// pause keeps what arrives, until resume delivers it.
	pause() {
		this.#buffer = [];
		this.#latest = {};
	}

	resume() {
		const [moments, latest] = [this.#buffer, this.#latest];
		this.#buffer = null;
		for (const type in latest) this.#listeners[type](latest[type]);
		this.#listeners.moments(moments);
	}
}
