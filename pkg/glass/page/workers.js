// workers.js: the workers. Each of the first ones has a lane with the stages of a sync.
import { keyLink, setText } from "./elements.js";

const lanesAtMost = 16;
const before = -0.45; // where a key enters a lane
const list = document.getElementById("lanes");

export class Workers {
	lanes = [];
	followed = "";
	#stages = []; // of a sync

	// resize shows a number of workers, and the stages of a sync. It returns whether that is new.
	resize(count, stages) {
		const shown = Math.min(count, lanesAtMost);
		if (shown === this.lanes.length && stages.join() === this.#stages.join()) return false;
		this.#stages = stages;
		this.lanes = Array.from({ length: shown }, (_, i) => {
			const element = Object.assign(document.createElement("li"), { className: "lane" });
			element.innerHTML = `<span class="number">${i + 1}</span><span class="key"></span><span class="step"></span>` +
				`<span class="stops" aria-hidden="true">${"<i></i>".repeat(stages.length)}<b><b></b></b></span>`;
			element.dataset.worker = i + 1;
			return { element, key: "", stop: before, failed: false, hasSteps: false };
		});
		document.getElementById("diagram").style.setProperty("--middle", Math.min(2, Math.floor((shown - 1) / 2)));
		list.replaceChildren(...this.lanes.map((lane) => lane.element));
		return true;
	}

	// stopOf returns where a stage is in a lane.
	#stopOf(stage) {
		const at = this.#stages.indexOf(stage);
		return at >= 0 ? at : { worker: before, server: Math.max(this.#stages.indexOf("apply"), 0) }[stage];
	}

	// set shows that the key of a lane is at a stage.
	set(lane, { key, stage, step, failed }) {
		if (lane.key !== key) {
			lane.element.querySelector(".key").replaceWith(keyLink(key));
			[lane.key, lane.failed, lane.hasSteps, lane.stop] = [key, false, false, before];
		}
		lane.failed ||= failed;
		lane.hasSteps ||= stage === "apply";
		lane.stop = this.#stopOf(stage) ?? lane.stop;
		lane.element.style.setProperty("--stop", lane.stop);
		lane.element.className = ["lane", "busy", key === this.followed && "followed", lane.failed && "failed"].filter(Boolean).join(" ");
		setText(lane.element.querySelector(".step"), step ?? "");
	}

	clear(lane) {
		if (!lane.key) return;
		lane.key = "";
		lane.element.className = "lane";
		lane.element.querySelector(".key").replaceWith(Object.assign(document.createElement("span"), { className: "key" }));
		setText(lane.element.querySelector(".step"), "");
	}

	// measure notes where the lanes are, and returns where the key enters each.
	measure(box) {
		return this.lanes.map((lane) => {
			const row = box(lane.element), track = box(lane.element.querySelector(".stops"));
			Object.assign(lane, { y: track.y, from: track.left, step: (track.right - track.left) / this.#stages.length });
			return { left: row.left, y: track.y };
		});
	}

	// position returns where the key of a lane is.
	position = (lane) => [lane.from + (lane.stop + 0.5) * lane.step, lane.y];
}
