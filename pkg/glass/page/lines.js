// lines.js: the routes of the lines between the stations. Each is a list of points.
// The style sheet chooses the shape: wide, medium (two rows) or narrow (a column).

const nameHeight = 46; // of a station's name, above its node

// routes returns the lines and the places of their labels by name, from the boxes of stations and of their nodes.
export function routes(shape, width, node, station, lanes, stages) {
	const straight = (from, to) => [[from.x, from.y], [to.x, to.y]];
	const end = (width - 20), retry = (width - 36); // the two rails on the right
	const { kubernetes, queue, backoff, server, cache } = station, asks = node[stages.includes("apply") ? "apply" : stages.at(-1)];
	const first = lanes[0]?.y ?? asks.y, to = Math.min(Math.max(asks.x, server.left + 16), server.right - 16);
	const bottom = backoff.bottom + 24, join = queue.left - 4;
	const words = shape === "narrow" ? station.worker.top : asks.top - nameHeight; // the top of the words of syncHandler
	const lines = {
		"kubernetes-watch": straight(node.kubernetes, node.watch),
		"watch-fifo": straight(node.watch, node.fifo),
		"fifo-indexer": straight(node.fifo, node.indexer),
		"indexer-handler": straight(node.indexer, node.handler),
		"handler-queue": straight(node.handler, node.queue),
		failed: [[retry, first], [retry, backoff.y], [backoff.right + 2, backoff.y]],
		done: [[end, first], [end, bottom], [kubernetes.x, bottom], [kubernetes.x, kubernetes.bottom + 4]],
		"backoff-queue": [[backoff.left, backoff.y], [join, backoff.y], [join, node.queue.y], [node.queue.left - 2, node.queue.y]],
	};
	if (server.right > server.left) lines.server = [[to, server.bottom + 3], [to, words]];
	if (cache.right > cache.left) lines.list = [[server.left, server.top + 20], [cache.right + 2, server.top + 20]];
	if (lines.list && node.actual) lines.cache = [[node.actual.x, cache.bottom], [node.actual.x, words]];
	const labels = {
		listArrow: [kubernetes.right + 6, node.watch.y - 13, "start"],
		keyArrow: [(node.handler.x + join) / 2 + 8, node.queue.y - 9, "middle"],
		statusArrow: [kubernetes.x + 16, bottom - 9, "start"],
		retryArrow: [(join + backoff.left) / 2 + 8, backoff.y - 9, "middle"],
	};
	if (shape === "medium") {
		const turn = station.handler.bottom + 14, left = queue.left - 12;
		lines["handler-queue"] = [[node.handler.x, node.handler.y], [end, node.handler.y], [end, turn], [left, turn], [left, node.queue.y], [node.queue.x, node.queue.y]];
		lines["backoff-queue"][1][0] = lines["backoff-queue"][2][0] = left;
		lines.done = [[end, first], [end, bottom], [2, bottom], [2, kubernetes.y], [kubernetes.left - 2, kubernetes.y]];
		labels.keyArrow = [left + 12, turn - 9, "start"];
		labels.statusArrow[0] = 16;
	} else if (shape === "narrow") {
		lines.failed[0][0] = lines.failed[1][0] = width - 9;
		lines.done = [[width - 2, first], [width - 2, kubernetes.y], [kubernetes.right + 2, kubernetes.y]];
		lines["backoff-queue"] = [[backoff.left, backoff.y], [4, backoff.y], [4, node.queue.y], [node.queue.left - 2, node.queue.y]];
		labels.statusArrow = [width - 8, kubernetes.bottom + 16, "end"];
		delete labels.listArrow, delete labels.keyArrow, delete labels.retryArrow;
	}
	lanes.forEach((lane, i) => lines[`lane-${i + 1}`] = laneRoute(shape, node.queue, lane));
	return { lines, labels };
}

function laneRoute(shape, from, to) {
	const between = shape === "narrow" ? from.x : to.left - 8;
	return [[from.x, from.y], [between, shape === "narrow" ? to.y : from.y], [between, to.y], [to.left, to.y]];
}
