// tables.js: the requests to Neutron, the last plans, the watches and the leader.
import { create, keyLink, setText } from "./elements.js";
import { clockTime, duration, number, text } from "./texts.js";

const rowsAtMost = 20;

// update replaces the children only if the data or the language is another one.
function update(element, data, render) {
	const version = document.documentElement.lang + JSON.stringify(data);
	if (element.version === version) return;
	element.version = version;
	element.replaceChildren(...render());
}

const row = (head, ...cells) => {
	const th = create("th", "", head);
	th.scope = "row";
	return create("tr", "", th, ...cells.map((cell) => cell instanceof Node ? cell : create("td", "", cell)));
};

const emptyRow = (words) => {
	const cell = create("td", "empty", words);
	cell.colSpan = 6;
	return create("tr", "", cell);
};

export function showTables(state) {
	const t = text(), p = state.process;
	const operations = [...state.neutron.operations].sort((a, b) => b.count - a.count).slice(0, rowsAtMost);
	update(document.querySelector("#operations tbody"), operations, () => operations.length ? operations.map((o) => {
		const failed = o.lastCode >= 400 || !o.lastCode;
		return row(o.name, number(o.count), create("td", o.errors ? "failed" : "", number(o.errors)), duration(o.p50Milliseconds), duration(o.p99Milliseconds),
			create("td", failed ? "failed" : "", o.lastCode ? String(o.lastCode) : t.noCode));
	}) : [emptyRow(t.noRequests)]);

	const plans = state.plans.slice(0, 8);
	update(document.getElementById("plans"), plans, () => plans.length ? plans.map((plan) => create("li", plan.failed ? "failed" : "",
		create("time", "", clockTime(plan.time)), keyLink(plan.key), create("span", "steps", plan.steps.join(" → ")), create("span", "outcome", plan.outcome)))
		: [create("li", "empty", t.noPlans)]);

	const informers = state.informers.slice(0, rowsAtMost).map(({ since, ...informer }) => informer);
	update(document.querySelector("#watches tbody"), informers, () => informers.flatMap((i) => {
		const shown = row(i.namespace ? `${i.kind} (${i.namespace})` : i.kind, create("td", i.activity === "waiting" ? "failed" : "", t.activities[i.activity] ?? i.activity),
			i.resourceVersion, number(i.lists), number(i.watches), number(i.objects));
		return i.lastError ? [shown, Object.assign(emptyRow(i.lastError), { className: "error" })] : [shown];
	}));

	setText(document.getElementById("leader"), !p.lease ? t.alone : p.leads ? t.leads(p.lease) : t.standby(p.holder, p.lease));
	setText(document.getElementById("process"), t.process(p, duration(Math.round((new Date(state.time) - new Date(p.started)) / 1000) * 1000)));
}
