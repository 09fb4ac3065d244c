// tour.js: the controls of a recording, and the words of the tour beside it.
import { create, setText } from "./elements.js";
import { language, number } from "./texts.js";

const $ = (id) => document.getElementById(id);
const clock = (ms) => `${Math.floor(ms / 60e3)}:${String(Math.floor(ms / 1000) % 60).padStart(2, "0")}`;

export class Tour {
	#recording;

	// onSpeed is called with the chosen speed.
	constructor(recording, onSpeed) {
		this.#recording = recording;
		$("tour").hidden = !recording.steps.length;
		$("position").max = recording.length;
		$("steps").append(...recording.steps.map(({ at }) => {
			const button = Object.assign(create("button"), { type: "button" });
			button.addEventListener("click", () => recording.jump(at));
			return create("li", "", button);
		}));
		$("position").addEventListener("input", () => recording.jump(Number($("position").value)));
		$("speed").addEventListener("change", () => onSpeed(Number($("speed").value)));
		$("speed").append(...[0.25, 0.5, 1, 2, 4].map((speed) => new Option("", speed, speed === 1, speed === 1)));
	}

	// show displays the position, and the words of its step.
	show() {
		const { steps, position, length } = this.#recording, at = steps.findLastIndex((step) => step.at <= position);
		if (document.activeElement !== $("position") || !this.#recording.paused) $("position").value = position;
		$("position").setAttribute("aria-valuetext", clock(position));
		setText($("time"), `${clock(position)} / ${clock(length)}`);
		for (const [i, item] of [...$("steps").children].entries()) {
			i === at ? item.firstChild.setAttribute("aria-current", "step") : item.firstChild.removeAttribute("aria-current");
		}
		setText($("lesson"), steps[at]?.lesson[language()] ?? "");
		setText($("commands"), steps[at]?.commands.map((command) => "$ " + command).join("\n") ?? "");
	}

	retext() {
		for (const option of $("speed").options) option.text = number(Number(option.value)) + "×";
		for (const [i, item] of [...$("steps").children].entries()) setText(item.firstChild, `${i + 1}. ${this.#recording.steps[i].title[language()]}`);
		this.show();
	}
}
