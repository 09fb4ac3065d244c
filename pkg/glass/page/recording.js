// recording.js: plays what the stream of a tour sent, in place of a stream, for a page
// without a controller: see docs/watch. `make recording` writes it.

const format = 2; // recordingFormat of hack/local
const period = 50; // milliseconds
const reading = 4000; // milliseconds without a moment, after which the time until the next one is short
const hurry = 10;

export class Recording {
	steps = [];
	length = 0; // in milliseconds
	speed = 1;
	#tape = null;
	#listeners;
	#key = "";
	#paused = false;
	#position = 0;
	#last = 0; // when the position was set
	#next = 0; // frame
	#state = {};
	#journeys = [];

	// The listeners are those of a Stream, position, and reset for another position than the next.
	constructor(listeners) {
		this.#listeners = listeners;
		const tape = globalThis.recording;
		if (tape?.format !== format || !tape.frames?.length) return;
		[this.#tape, this.steps, this.length] = [tape, tape.steps, Math.ceil(tape.frames.at(-1).at / 1000 + 1) * 1000];
		if (!location.hash) history.replaceState(null, "", "#" + tape.key);
		setInterval(() => this.#tick(), period);
	}

	kind = "recorded";

	now = () => new Date(this.#tape?.began).getTime() + this.#position;

	keys = async () => this.#tape ? [this.#tape.key] : [];

	get position() {
		return this.#position;
	}

	get paused() {
		return this.#paused;
	}

	set paused(paused) {
		this.#paused = paused;
		this.#last = performance.now();
	}

	connect(key) {
		this.#key = key;
		if (!this.#tape) return this.#listeners.connection("broken");
		this.#listeners.connection("open");
		this.jump(this.#position);
	}

	// jump continues at another position.
	jump(position) {
		[this.#next, this.#state, this.#journeys, this.#position, this.#last] = [0, {}, [], position, performance.now()];
		this.#play(() => {
			this.#listeners.reset();
			this.#advance();
			this.#send("state", this.#state);
			this.#sendJourneys();
		});
	}

	#tick() {
		const now = performance.now(), passed = (now - this.#last) * this.speed * (this.#isStill() ? hurry : 1);
		if (this.#paused) return;
		[this.#position, this.#last] = [Math.min(this.length, this.#position + passed), now];
		this.#play(() => {
			const arrived = this.#advance(), has = (type) => arrived.some((frame) => frame[type]);
			if (has("moments")) this.#send("moments", arrived.flatMap(({ moments }) => moments ?? []));
			if (has("state")) this.#send("state", this.#state);
			if (has("journeys")) this.#sendJourneys();
		});
	}

	// isStill reports whether nothing has moved for a while, and nothing will at once.
	#isStill() {
		const of = ({ moments }) => moments, { frames } = this.#tape ?? { frames: [] };
		const before = frames.slice(0, this.#next).findLast(of)?.at ?? 0, after = frames.slice(this.#next).find(of)?.at ?? 0;
		return this.#position - before > reading && after - this.#position > 10 * period;
	}

	// play stops, and says so, if the page of today cannot show what is recorded.
	#play(what) {
		if (!this.#tape) return;
		try {
			what();
			this.#listeners.position();
		} catch (error) {
			this.#tape = null;
			this.#listeners.connection("broken");
			console.warn("The recording cannot be played:", error);
		}
	}

	// advance returns the frames until the position, and applies what they change.
	#advance() {
		const { frames } = this.#tape, from = this.#next;
		for (; frames[this.#next]?.at <= this.#position; this.#next++) {
			const { state, journeys } = frames[this.#next];
			this.#state = { ...this.#state, ...state };
			this.#journeys = journeys?.map((changed) => ({ ...this.#journeys.find(({ id }) => id === changed.id), ...changed })) ?? this.#journeys;
		}
		return frames.slice(from, this.#next);
	}

	#sendJourneys() {
		this.#send("journeys", this.#key === this.#tape.key ? this.#journeys : []);
	}

	#send(type, value) {
		this.#listeners[type](type === "state" ? { ...value, time: new Date(this.now()).toISOString() } : value);
	}
}
