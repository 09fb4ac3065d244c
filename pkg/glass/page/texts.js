// texts.js: all words of the page, in English and Chinese. A text with values is a
// function. Keys, errors and steps come from the controller and stay in English.

const english = {
	language: "中文", page: "Debug page", comma: ", ", controller: "Controller", skip: "Follow one key", controls: "Display", path: "The path of a key",
	dark: "Dark", light: "Light", pause: "Pause", resume: "Resume",
	connecting: "Connecting", live: "Live", recorded: "Recording", lost: "Connection lost, retrying", broken: "No recording", paused: "Paused",
	informer: "Informer", units: ["ms", "s", "min", "h"],
	process: (version, since) => `${version && version + ", "}running for ${since}`,

	// The name of a station, the unit of its number (one|many), and what it does.
	stations: {
		kubernetes: ["Kubernetes API", "", "Stores the objects. The controller reads them with list and watch, and writes finalizer, status and events."],
		watch: ["Reflector", "", "Lists all objects once, then watches for changes. After an error it continues at the last resourceVersion, or lists again."],
		fifo: ["FIFO", "", "The queue inside the informer: changes, in order. DeltaFIFO in older releases and in most courses."],
		indexer: ["Indexer", "object|objects", "The local copy of all objects. It is updated before the handlers run. To read it costs no request."],
		handler: ["Event handlers", "call|calls", "Called for each added, updated or deleted object. They add a key to the work queue, and do nothing else."],
		queue: ["Work queue", "key waits|keys wait", "Contains keys, not objects, and each key once. A key that is added while it waits is merged: many events, one sync."],
		worker: ["Workers", "", "Each worker takes a key and calls syncHandler. Two workers never have one key at a time."],
		desired: ["desired", "", "The desired state, derived from the object's spec in the Indexer. No request."],
		actual: ["actual", "", "The actual state, as far as the caches have it. No request."],
		plan: ["plan", "", "Compares the two, and decides on the next step. A pure function: no request, no clock, no log."],
		apply: ["apply", "", "Applies one step with at most one request. Plan and apply repeat until no step is left."],
		report: ["report", "", "Writes status and events to the Kubernetes API, if they changed. This write comes back as an event, and is skipped."],
		sync: ["sync", "", "Reads the object, compares the desired state with the actual state, and removes the difference. This program does not name its stages."],
		server: ["", "request|requests", "What the controller uses beside Kubernetes. A small dot is a request and its response."],
		cache: ["Cache", "", "For another server what the informer is for Kubernetes: the last list, and the controller's own writes."],
		backoff: ["Backoff", "key waits for a retry|keys wait for a retry", "After a failure, the key waits before it is added to the queue again. Each further failure doubles the delay."],
	},
	// The steps of docs/images/pattern.svg, by their names there.
	steps: ["ListWatch: lists all objects, then watches for changes", "Reflector: adds each change to the FIFO", "Informer: takes the changes out, in order",
		"Indexer: receives the new state of the object", "Store: keeps it under its key, namespace/name", "handlers: called with the change",
		"Add: adds only the key to the work queue", "Get: a worker takes a key out", "Lister: syncHandler reads the object from the local copy", "Apply: one step after the other, with one request each", "Report: writes the status and events", "AddRateLimited: adds the key of a failed sync, later"],
	activities: { watching: "watching", listing: "listing", waiting: "waiting after an error" },
	watchesOpen: "watches", cacheOf: (name) => `Cache of ${name}'s state`, listedAgo: (age) => `listed ${age} ago`, neverListed: "not listed yet",
	handlerKinds: (h, f) => [`${f(h.added)} added`, `${f(h.updated)} updated`, `${f(h.deleted)} deleted`, `${f(h.skipped)} skipped`],
	merged: (n) => `${n} merged`, moreKeys: (n) => `and ${n} more`, busy: (n, all) => `${n} of ${all} busy`,
	inFlight: (n, limit) => limit ? `${n} of ${limit} at a time` : `${n} now`,
	listArrow: "list, watch", keyArrow: "key", statusArrow: "status, events", retryArrow: "retry",
	inSeconds: (s) => `in ${s} s`, waits: (n) => n ? `failure ${n}` : "retry later",

	headline: {
		connecting: () => "Connecting to the controller.",
		lost: () => "Connection lost. The picture shows the last known state.",
		broken: () => "The recording is missing or damaged, or made for another version of this page: make recording writes it again.",
		standby: (s) => `Standby: ${s.holder || "another replica"} is the leader.`,
		listing: () => "The Reflector lists the objects.",
		waiting: () => "The Reflector waits after an error.",
		working: (s) => [s.busy && `${s.busy} ${s.busy === "1" ? "worker is" : "workers are"} busy`, s.depth && `${s.depth} ${s.depth === "1" ? "key waits" : "keys wait"}`].filter(Boolean).join(", ") + ".",
		moving: () => "Keys are on their way.",
		failing: (s) => `At rest, but ${s.waiting} ${s.waiting === "1" ? "key waits" : "keys wait"} for a retry.`,
		rest: (s) => `At rest: ${s.objects} ${s.objects === "1" ? "object" : "objects"}, nothing to do.`,
	},
	hint: "A change of an object becomes a key, and the key travels along the line. Point at a station to read what it does.",

	tour: "Tour", tourSteps: "Steps", position: "Position", speed: "Speed",
	follow: "Follow one key", unfollow: "Stop",
	followHint: "Type or select a key to see its journeys: why it was queued, what the controller found, and what it did.",
	noJourneys: (key) => `No journey of ${key} is kept yet. The next event starts one.`,
	journeyGone: (id) => `The journey ${id} is no longer kept.`, copy: "Copy as text", copied: "Copied", notCopied: "The browser does not allow it",
	running: "Running", waitsForWorker: "Waits for a worker", failed: "Failed", succeeded: "Done",
	merge: (n) => `${n} events, one sync`, moreCauses: (n) => `and ${n} more`,
	causes: { added: "Event: added", updated: "Event: updated", deleted: "Event: deleted", event: "Event", start: "Start: every object is queued once", drift: "Drift: the actual state differs", retry: "Retry after a failure" },
	taken: (n) => `Taken by worker ${n}`, wait: (t) => `waited ${t}`,
	found: { desired: "Desired", actual: "Actual" }, outcome: "Outcome", retry: "Next retry", retryFailures: (n) => `failure ${n} in a row`,
};

const chinese = {
	language: "English", page: "调试页面", comma: "，", controller: "控制器", skip: "跟踪一个 key", controls: "显示", path: "一个 key 的路径",
	dark: "深色", light: "浅色", pause: "暂停", resume: "继续",
	connecting: "正在连接", live: "实时", recorded: "录像", lost: "连接断开，正在重试", broken: "没有录像", paused: "已暂停",
	informer: "Informer", units: ["毫秒", "秒", "分钟", "小时"],
	process: (version, since) => `${version && version + "，"}已运行 ${since}`,

	stations: {
		kubernetes: ["Kubernetes API", "", "保存对象。控制器用 list 和 watch 读取，写回 finalizer、status 和 Event。"],
		watch: ["Reflector", "", "先 list 一次全部对象，再 watch 此后的变化。出错后从上一个 resourceVersion 接着 watch，或者重新 list。"],
		fifo: ["FIFO", "", "Informer 内部的队列：按顺序排列的变化。旧版本和大多数课程里叫 DeltaFIFO。"],
		indexer: ["Indexer", "个对象", "全部对象的本地副本（本地缓存）。先更新它，再调用事件处理函数。读它不需要请求。"],
		handler: ["事件处理函数", "次调用", "对象增、改、删时调用。只把 key 放进工作队列，别的什么也不做。"],
		queue: ["工作队列", "个 key 在等", "里面是 key，不是对象；每个 key 只有一份。还在等的 key 再次加入时会合并：许多事件，一次同步。"],
		worker: ["worker", "", "每个 worker 取一个 key，调用 syncHandler。同一个 key 同一时间只交给一个 worker。"],
		desired: ["期望", "", "期望状态（desired）：由 Indexer 里对象的 spec 推出。不需要请求。"],
		actual: ["实际", "", "实际状态（actual）：来自缓存。不需要请求。"],
		plan: ["计划", "", "计划（plan）：比较两者，决定下一步。纯函数：没有请求、时钟和日志。"],
		apply: ["执行", "", "执行（apply）：一步最多一个请求。计划和执行交替进行，直到没有下一步。"],
		report: ["报告", "", "报告（report）：status 和 Event 有变化才写回 Kubernetes API。写入的 status 又会变成一个更新事件，事件处理函数会跳过它。"],
		sync: ["同步", "", "读取对象，比较期望状态和实际状态，消除差异。这个程序没有给各阶段命名。"],
		server: ["", "个请求", "控制器在 Kubernetes 之外使用的服务。小圆点是一个请求和它的响应。"],
		cache: ["缓存", "", "它之于另一个服务，就像 Informer 之于 Kubernetes：上一次列举的结果，加上控制器自己的写操作。"],
		backoff: ["退避", "个 key 等待重试", "失败后，key 要等一会儿才重新加入队列。每多失败一次，等待时间加倍。"],
	},
	steps: ["ListWatch：先 list 全部对象，再 watch 变化", "Reflector：把每个变化放进 FIFO", "Informer：按顺序取出变化",
		"Indexer：收到对象的新状态", "Store：按 key（namespace/name）保存对象", "handlers：事件处理函数收到变化",
		"Add：只把 key 放进工作队列", "Get：worker 取走一个 key", "Lister：syncHandler 从本地副本读出对象", "Apply：一步接一步，每步一个请求", "Report：写回 status 和 Event", "AddRateLimited：同步失败的 key，退避之后再放进队列"],
	activities: { watching: "watch 中", listing: "list 中", waiting: "出错后等待" },
	watchesOpen: "个 watch", cacheOf: (name) => `${name} 状态的缓存`, listedAgo: (age) => `${age}前列举`, neverListed: "尚未列举",
	handlerKinds: (h, f) => [`${f(h.added)} 增`, `${f(h.updated)} 改`, `${f(h.deleted)} 删`, `${f(h.skipped)} 跳过`],
	merged: (n) => `合并了 ${n} 次`, moreKeys: (n) => `还有 ${n} 个`, busy: (n, all) => `${all} 个中 ${n} 个在忙`,
	inFlight: (n, limit) => limit ? `并发 ${n}，最多 ${limit}` : `并发 ${n}`,
	listArrow: "list、watch", keyArrow: "key", statusArrow: "status、Event", retryArrow: "重试",
	inSeconds: (s) => `${s} 秒后`, waits: (n) => n ? `第 ${n} 次失败` : "稍后重试",

	headline: {
		connecting: () => "正在连接控制器。",
		lost: () => "连接断开。图中是最后已知的状态。",
		broken: () => "录像缺失、损坏，或者属于这个页面的另一个版本：make recording 会重新录制。",
		standby: (s) => `备用：leader 是 ${s.holder || "另一个副本"}。`,
		listing: () => "Reflector 正在 list 对象。",
		waiting: () => "Reflector 出错后正在等待。",
		working: (s) => [s.busy && `${s.busy} 个 worker 在忙`, s.depth && `${s.depth} 个 key 在等`].filter(Boolean).join("，") + "。",
		moving: () => "key 正在路上。",
		failing: (s) => `空闲，但有 ${s.waiting} 个 key 等待重试。`,
		rest: (s) => `空闲：${s.objects} 个对象，没有要做的事。`,
	},
	hint: "对象一变化，就产生一个 key，沿着连线走。把鼠标移到某个环节上，就能看到它的作用。",

	tour: "导览", tourSteps: "步骤", position: "进度", speed: "速度",
	follow: "跟踪一个 key", unfollow: "停止",
	followHint: "输入或选择一个 key，查看它的历程：为什么进队列，控制器看到了什么，做了什么。",
	noJourneys: (key) => `还没有 ${key} 的历程。下一个事件到来时就有了。`,
	journeyGone: (id) => `历程 ${id} 已不再保留。`, copy: "复制为文本", copied: "已复制", notCopied: "浏览器不允许复制",
	running: "进行中", waitsForWorker: "等待 worker", failed: "失败", succeeded: "完成",
	merge: (n) => `${n} 个事件，一次同步`, moreCauses: (n) => `另有 ${n} 个`,
	causes: { added: "事件：新增", updated: "事件：修改", deleted: "事件：删除", event: "事件", start: "启动：每个对象进一次队列", drift: "漂移：实际状态有差异", retry: "失败后重试" },
	taken: (n) => `由 worker ${n} 取走`, wait: (t) => `等了 ${t}`,
	found: { desired: "期望状态", actual: "实际状态" }, outcome: "结果", retry: "下次重试", retryFailures: (n) => `连续第 ${n} 次失败`,
};

const languages = { en: english, "zh-CN": chinese };
let current = localStorage.getItem("language");
if (!(current in languages)) current = navigator.language.startsWith("zh") ? "zh-CN" : "en";

// unitOf returns the unit of a station for its number.
export const unitOf = (stage, n) => text().stations[stage][1].split("|").at(n === 1 ? 0 : -1);

export const text = () => languages[current];
export const language = () => current;

// setLanguage changes the language of everything that the HTML names by data-text and
// data-label. The other parts of the page render themselves again.
export function setLanguage(to = current) {
	if (to !== current) localStorage.setItem("language", to);
	current = to;
	document.documentElement.lang = to;
	for (const element of document.querySelectorAll("[data-text]")) element.textContent = text()[element.dataset.text];
	for (const element of document.querySelectorAll("[data-label]")) element.setAttribute("aria-label", text()[element.dataset.label]);
}

// A formatter is expensive to create, so each is kept.
const formatters = new Map();

function format(type, options, value) {
	const name = current + JSON.stringify(options);
	if (!formatters.has(name)) formatters.set(name, new Intl[type](current, options));
	return formatters.get(name).format(value);
}

export const number = (n) => format("NumberFormat", {}, n);

// duration returns milliseconds in words, such as "12 ms", "3.4 s" or "2 min".
export function duration(ms) {
	const [value, unit] = ms < 10 ? [ms, 0] : ms < 1000 ? [Math.round(ms), 0] : ms < 120e3 ? [ms / 1000, 1] : ms < 7200e3 ? [Math.round(ms / 60e3), 2] : [Math.round(ms / 3600e3), 3];
	return `${format("NumberFormat", { maximumFractionDigits: 1 }, value)} ${text().units[unit]}`;
}

export const clockTime = (time) => format("DateTimeFormat", { hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3, hour12: false }, new Date(time));
