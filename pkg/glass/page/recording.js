// recording.js: plays what the stream of a tour sent, in place of a stream, for a page
// without a controller: see docs/watch. `make recording` writes it.

const format = 4; // recordingFormat of hack/local
const period = 50; // milliseconds
const reading = 4000; // milliseconds without a moment, after which the time until the next one is short
const hurry = 10;

// complete returns the frames with whole states and journeys, of which a tape has the changes.
function complete(frames) {
	let state = {}, journeys = [];
	const known = ({ id }) => journeys.find((journey) => journey.id === id);
	return frames.map((frame) => {
		state = { ...state, ...frame.state };
		journeys = frame.journeys?.map((changed) => ({ ...known(changed), ...changed })) ?? journeys;
		return { at: frame.at, moments: frame.moments ?? [], state, journeys };
	});
}

export class Recording {
	kind = "recorded";
	steps = [];
	length = 0; // in milliseconds
	position = 0;
	speed = 1;
	paused = false;
	#tape = null;
	#frames = [];
	#listeners;
	#key = "";
	#next = 0; // frame

	// The listeners are those of a Stream, position, and reset for another position than the next.
	constructor(listeners) {
		this.#listeners = listeners;
		const tape = globalThis.recording;
		if (tape?.format !== format || !tape.frames?.length) return;
		[this.#tape, this.#frames, this.steps, this.length] = [tape, complete(tape.frames), tape.steps, Math.ceil(tape.frames.at(-1).at / 1000 + 1) * 1000];
		if (!location.hash) history.replaceState(null, "", "#" + tape.key);
		let last = performance.now();
		setInterval(() => {
			const now = performance.now(), passed = (now - last) * this.speed * (this.#isStill() ? hurry : 1);
			last = now;
			if (!this.paused) this.#play(Math.min(this.length, this.position + passed));
		}, period);
	}

	now = () => new Date(this.#tape?.began).getTime() + this.position;

	keys = async () => this.#tape ? [this.#tape.key] : [];

	connect(key) {
		this.#key = key;
		this.#listeners.connection(this.#tape ? "open" : "broken");
		this.jump(this.position);
	}

	// jump continues at another position, without the dots that were on their way.
	jump(position) {
		this.#next = 0;
		this.#listeners.reset();
		this.#play(position, true);
	}

	// isStill reports whether nothing has moved for a while, and nothing will at once.
	#isStill() {
		const moves = ({ moments }) => moments.length > 0;
		const before = this.#frames.slice(0, this.#next).findLast(moves)?.at ?? 0, after = this.#frames.slice(this.#next).find(moves)?.at ?? 0;
		return this.position - before > reading && after - this.position > 10 * period;
	}

	// play shows what arrived until a position. It stops, and says so, if the page of today
	// cannot show what is recorded.
	#play(position, isJump) {
		if (!this.#tape) return;
		const end = Math.max(1, this.#frames.findLastIndex(({ at }) => at <= position) + 1), arrived = this.#frames.slice(this.#next, end);
		[this.position, this.#next] = [position, end];
		try {
			if (!isJump) this.#listeners.moments(arrived.flatMap(({ moments }) => moments));
			if (arrived.length) this.#show(arrived.at(-1));
			this.#listeners.position();
		} catch (error) {
			this.#tape = null;
			this.#listeners.connection("broken");
			console.warn("The recording cannot be played:", error);
		}
	}

	#show({ state, journeys }) {
		this.#listeners.state({ ...state, time: new Date(this.now()).toISOString() });
		this.#listeners.journeys(this.#key === this.#tape.key ? journeys : []);
	}
}
