// workers.js: the workers. A busy worker has a lane with the stages of a sync.
// If there are more workers than lanes, each has a small cell as well.
import { keyLink, setText } from "./elements.js";
import { text } from "./texts.js";

const lanesAtMost = 6;

export class Workers {
	#list = document.getElementById("lanes");
	#cells = document.getElementById("cells");
	#lanes = [];
	#count = 0;
	#stops = []; // the stages of a sync
	#onBuild;

	// onBuild is called after the number of lanes has changed.
	constructor(onBuild) {
		this.#onBuild = onBuild;
	}

	set stages(stages) {
		this.#stops = stages;
		if (this.#count) this.#build();
	}

	// stopOf returns where a stage is in a lane.
	#stopOf(stage) {
		const last = this.#stops.length - 1, at = this.#stops.indexOf(stage);
		return at >= 0 ? at : { worker: -0.45, server: Math.max(this.#stops.indexOf("apply"), 0), done: last, backoff: last }[stage];
	}

	// show displays the workers of a state. A lane with a dot on its way stays as it is.
	// It returns how many workers are shown as busy.
	show(workers, followed) {
		if (workers.length !== this.#count) {
			this.#count = workers.length;
			this.#build();
		}
		for (const lane of this.#lanes) {
			if (!lane.player && !workers[lane.worker - 1]?.key) this.#clear(lane);
		}
		for (const worker of workers.filter((worker) => worker.key)) {
			const lane = this.#laneOf(worker.number);
			if (lane && !lane.player) this.#set(lane, worker.key, worker.stage, worker.step ?? "", followed);
		}
		const shown = workers.map((worker) => worker.key ? worker : { ...worker, key: this.#lanes.find((lane) => lane.worker === worker.number)?.key });
		this.#showCells(shown, followed);
		return shown.filter((worker) => worker.key).length;
	}

	// enter reserves the lane of a worker for a dot, when those before have left. It
	// returns null if all lanes are in use, or if too many wait already.
	async enter(worker, key) {
		const lane = this.#laneOf(worker);
		if (!lane || lane.waiting >= (this.#count === 1 ? 20 : 2)) return null;
		lane.waiting++;
		while (lane.player) await lane.left;
		lane.waiting--;
		this.#give(lane, worker);
		lane.player = key;
		lane.left = new Promise((leave) => lane.leave = leave);
		return lane;
	}

	// leave makes a lane free for the next dot.
	leave(lane) {
		if (!lane?.player) return;
		lane.player = "";
		this.#clear(lane);
		lane.leave();
	}

	#laneOf(worker) {
		const lane = this.#lanes.find((lane) => lane.worker === worker) ?? this.#lanes.find((lane) => !lane.worker);
		if (lane && !lane.worker) this.#give(lane, worker);
		return lane;
	}

	#give(lane, worker) {
		lane.worker = worker;
		lane.element.dataset.worker = worker;
		setText(lane.element.querySelector(".number"), worker);
	}

	get #fixed() {
		return this.#count <= lanesAtMost;
	}

	// move shows that the key of a lane has reached a stage.
	move(lane, moment, followed) {
		if (moment.stage === "done" || moment.stage === "backoff") return;
		lane.failed = lane.failed || moment.failed;
		this.#set(lane, moment.key, moment.stage, { worker: "", apply: moment.text, server: moment.text }[moment.stage], followed);
	}

	// depart hides the dot of a lane, because another one moves on from there.
	depart(lane) {
		lane.element.classList.add("departed");
	}

	#set(lane, key, stage, step, followed) {
		if (lane.key !== key) lane.element.querySelector(".key").replaceWith(keyLink(key));
		lane.key = key;
		lane.stop = this.#stopOf(stage) ?? lane.stop;
		lane.element.style.setProperty("--stop", lane.stop);
		lane.element.className = ["lane", "busy", key === followed && "followed", lane.failed && "failed"].filter(Boolean).join(" ");
		if (step !== undefined) setText(lane.element.querySelector(".step"), step);
	}

	#clear(lane) {
		if (!this.#fixed && lane.worker) {
			lane.worker = 0;
			delete lane.element.dataset.worker;
			setText(lane.element.querySelector(".number"), "");
		}
		if (!lane.key) return;
		lane.key = "";
		lane.failed = false;
		lane.element.className = "lane";
		lane.element.querySelector(".key").replaceWith(Object.assign(document.createElement("span"), { className: "key" }));
		setText(lane.element.querySelector(".step"), "");
	}

	#build() {
		const count = this.#fixed ? this.#count : lanesAtMost;
		this.#lanes = Array.from({ length: count }, (_, slot) => {
			const element = document.createElement("li");
			element.className = "lane";
			element.innerHTML = `<span class="number"></span><span class="key"></span><span class="step"></span><span class="stops" aria-hidden="true">${"<i></i>".repeat(this.#stops.length)}<b><b></b></b></span>`;
			if (this.#fixed) {
				element.dataset.worker = slot + 1;
				setText(element.querySelector(".number"), slot + 1);
			}
			return { slot, element, worker: this.#fixed ? slot + 1 : 0, key: "", stop: -0.45, player: "", waiting: 0 };
		});
		document.getElementById("diagram").style.setProperty("--middle", Math.min(2, Math.floor((count - 1) / 2)));
		this.#list.replaceChildren(...this.#lanes.map((lane) => lane.element));
		this.#cells.replaceChildren(...Array.from({ length: this.#count > lanesAtMost ? this.#count : 0 }, () => document.createElement("li")));
		this.#onBuild();
	}

	#showCells(workers, followed) {
		[...this.#cells.children].forEach((cell, i) => {
			const worker = workers[i], title = text().workerCell(worker);
			cell.className = [worker.key && "busy", worker.key && worker.key === followed && "followed"].filter(Boolean).join(" ");
			if (cell.title !== title) cell.title = title;
			setText(cell, worker.number);
		});
	}

	// measure notes where the lanes are, and returns where the key enters each.
	measure(box) {
		return this.#lanes.map((lane) => {
			const row = box(lane.element), track = box(lane.element.querySelector(".stops"));
			Object.assign(lane, { y: track.y, from: track.left, step: (track.right - track.left) / this.#stops.length });
			return { slot: lane.slot, left: row.left, y: track.y };
		});
	}

	// position returns where the key of a lane is.
	position(lane) {
		return [lane.from + (lane.stop + 0.5) * lane.step, lane.y];
	}
}
