// tables.js: the last plans, the watches and the leader.
import { create, keyLink, setText, showList } from "./elements.js";
import { clockTime, duration, number, text } from "./texts.js";

const rowsAtMost = 20;
const $ = (selector) => document.querySelector(selector);

const row = (head, ...cells) => {
	const th = create("th", "", head);
	th.scope = "row";
	return create("tr", "", th, ...cells.map((cell) => cell instanceof Node ? cell : create("td", "", cell)));
};

const planItem = (plan) => create("li", plan.failed ? "failed" : "",
	create("time", "", clockTime(plan.time)), keyLink(plan.key),
	create("span", "steps", plan.steps.join(" → ")), create("span", "outcome", plan.outcome));

const informerRow = (i) => row(i.namespace ? `${i.resource} (${i.namespace})` : i.resource,
	create("td", i.lastError ? "failed" : "", text().activities[i.activity], i.lastError && create("p", "", i.lastError)),
	i.resourceVersion, number(i.lists), number(i.watches), number(i.objects));

export function showTables(state) {
	const t = text(), p = state.process;
	showList($("#plans"), state.plans, planItem, t.noPlans, (words) => create("li", "empty", words));
	showList($("#watches tbody"), state.informers.slice(0, rowsAtMost), informerRow);
	setText($("#leader"), !p.lease ? t.alone : p.leads ? t.leads(p.lease) : t.standby(p.holder, p.lease));
	const seconds = Math.round((new Date(state.time) - new Date(p.started)) / 1000);
	$("#process").dataset.version = p.version;
	setText($("h1"), p.name || t.page);
	document.title = p.name ? `${t.page}: ${p.name}` : t.page;
	const instances = state.servers.filter((server) => server.instance).map((server) => `${server.name}: ${server.instance}`);
	setText($("#process"), [t.process(p.version, duration(seconds * 1000)), ...instances].filter(Boolean).join(t.comma));
}
