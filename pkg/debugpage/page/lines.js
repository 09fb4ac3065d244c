// lines.js: the routes of the lines between the stations. Each is a list of points.
// The style sheet chooses the shape: wide, medium (two rows) or narrow (a column).
import { rounded } from "./motion.js";

// routes returns the lines by name, from the boxes of stations and of their nodes.
export function routes(shape, width, node, station, lanes) {
	const straight = (from, to) => [[from.x, from.y], [to.x, to.y]];
	const end = (width - 20), retry = (width - 36); // the two rails on the right
	const { kubernetes, queue, backoff, neutron, cache } = station, first = lanes[0]?.y ?? node.report.y;
	const bottom = backoff.bottom + 22;
	const lines = {
		"kubernetes-watch": straight(node.kubernetes, node.watch),
		"watch-fifo": straight(node.watch, node.fifo),
		"fifo-indexer": straight(node.fifo, node.indexer),
		"indexer-handler": straight(node.indexer, node.handler),
		"handler-queue": straight(node.handler, node.queue),
		neutron: [[node.apply.x, neutron.bottom], [node.apply.x, node.apply.top - 30]],
		cache: [[node.actual.x, cache.bottom], [node.actual.x, node.actual.top - 30]],
		list: [[neutron.left, neutron.top + 18], [cache.right, cache.top + 18]],
		failed: [[retry, first], [retry, backoff.y], [backoff.right, backoff.y]],
		done: [[end, first], [end, bottom], [kubernetes.x, bottom], [kubernetes.x, kubernetes.bottom + 4]],
		"backoff-queue": [[backoff.left, backoff.y], [node.queue.x, backoff.y], [node.queue.x, queue.bottom]],
	};
	if (shape === "medium") {
		const turn = station.handler.bottom + 14, left = queue.left - 12;
		lines["handler-queue"] = [[node.handler.x, node.handler.y], [end, node.handler.y], [end, turn], [left, turn], [left, node.queue.y], [node.queue.x, node.queue.y]];
		lines.done = [[end, first], [end, bottom], [4, bottom], [4, kubernetes.y], [kubernetes.left, kubernetes.y]];
	} else if (shape === "narrow") {
		lines.failed[0][0] = lines.failed[1][0] = width - 8;
		lines.done = [[width - 2, first], [width - 2, kubernetes.y], [kubernetes.right, kubernetes.y]];
		lines["backoff-queue"] = [[backoff.left, backoff.y], [4, backoff.y], [4, node.queue.y], [node.queue.left, node.queue.y]];
	}
	for (const lane of lanes) lines[`lane-${lane.slot}`] = laneRoute(shape, node.queue, lane);
	for (const name in lines) lines[name] = rounded(lines[name]);
	return lines;
}

function laneRoute(shape, from, to) {
	const between = shape === "narrow" ? from.x : to.left - 26;
	return [[from.x, from.y], [between, shape === "narrow" ? to.y : from.y], [between, to.y], [to.left, to.y]];
}
