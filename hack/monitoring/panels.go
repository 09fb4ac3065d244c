package main

// panels are the panels of the dashboard, in the order of an operator's questions:
// the state of the Networks, the leader, the queue, Neutron, drift, the API server,
// and resource usage.
var panels = []panel{
	{
		title:       "State of Networks",
		description: "Networks by the reason of their condition Ready. docs/reference/conditions.md explains each reason.",
		unit:        "short", stacked: true, width: 12,
		queries: []query{{expr: `sum by (ready, reason) (max by (namespace, ready, reason) (samplecrd_networks{SELECT}))`, legend: "{{reason}} (Ready={{ready}})"}},
	},
	{
		title:       "Time to Ready",
		description: "Time from the creation of a Network until it was Ready for the first time, for Networks that became Ready in the last 30 minutes.",
		unit:        "s", width: 12,
		queries: quantiles("samplecrd_network_ready_duration_seconds", "30m", "", "0.50", "0.90", "0.99"),
	},
	{
		title:       "Leader",
		description: "The leader, and the replicas that wait. Empty if leader election is off.",
		kind:        "state-timeline", unit: "none",
		queries: []query{{expr: `max by (namespace, pod, instance) (leader_election_master_status{SELECT})`, legend: "{{pod}} {{instance}}"}},
		more:    leaderStates,
	},
	{
		title:       "Replicas",
		description: "Version, uptime, and number of restarts in the displayed time range.",
		kind:        "table", unit: "none", width: 16,
		queries: []query{
			{expr: `(time() - process_start_time_seconds{SELECT}) * on (namespace, pod, instance) group_left (version, go_version) max by (namespace, pod, instance, version, go_version) (samplecrd_build_info{SELECT})`, instant: true},
			{expr: `changes(process_start_time_seconds{SELECT}[$__range]) * on (namespace, pod, instance) group_left (version, go_version) max by (namespace, pod, instance, version, go_version) (samplecrd_build_info{SELECT})`, instant: true},
		},
		more: instanceColumns,
	},
	{
		title:       "Queue",
		description: "Networks that wait for a worker. A healthy queue is empty most of the time.",
		unit:        "short",
		queries:     []query{{expr: `workqueue_depth{SELECT, name="Networks"}`, legend: "{{pod}} {{instance}}"}},
	},
	{
		title:       "Queue time and sync duration",
		description: "Time that a Network waits for a worker, duration of a sync, and duration of the syncs in progress.",
		unit:        "s",
		queries: append(append(
			quantiles("workqueue_queue_duration_seconds", "$__rate_interval", "queue ", "0.50", "0.99"),
			quantiles("workqueue_work_duration_seconds", "$__rate_interval", "sync ", "0.50", "0.99")...),
			query{expr: `max(workqueue_longest_running_processor_seconds{SELECT, name="Networks"})`, legend: "longest in progress"},
			query{expr: `max(workqueue_unfinished_work_seconds{SELECT, name="Networks"})`, legend: "all in progress"}),
	},
	{
		title:       "Additions to the queue",
		description: "Keys added to the queue per second, and those that were added for a retry.",
		unit:        "ops",
		queries: []query{
			{expr: `sum(rate(workqueue_adds_total{SELECT, name="Networks"}[$__rate_interval]))`, legend: "added"},
			{expr: `sum(rate(workqueue_retries_total{SELECT, name="Networks"}[$__rate_interval]))`, legend: "retries"},
		},
	},
	{
		title:       "Requests to Neutron",
		description: "Requests per second, by operation. An idle controller only lists networks and subnets.",
		unit:        "reqps", stacked: true,
		queries: []query{{expr: `sum by (operation) (rate(samplecrd_neutron_request_duration_seconds_count{SELECT}[$__rate_interval]))`, legend: "{{operation}}"}},
	},
	{
		title:       "Failed requests to Neutron",
		description: "Requests per second that failed, by operation and HTTP status code. The code is none if there was no response. A 4xx often results from a spec that Neutron rejects, a 401 from an expired token, which is renewed.",
		unit:        "reqps", stacked: true,
		queries: []query{{expr: `sum by (operation, code) (rate(samplecrd_neutron_request_duration_seconds_count{SELECT, code!~"2.."}[$__rate_interval]))`, legend: "{{operation}}: {{code}}"}},
	},
	{
		title:       "Duration of requests to Neutron",
		description: "Quantiles of the time until the response headers arrive, by operation.",
		unit:        "s",
		queries: []query{
			{expr: `histogram_quantile(0.5, sum by (operation, le) (rate(samplecrd_neutron_request_duration_seconds_bucket{SELECT}[$__rate_interval])))`, legend: "p50 {{operation}}"},
			{expr: `histogram_quantile(0.99, sum by (operation, le) (rate(samplecrd_neutron_request_duration_seconds_bucket{SELECT}[$__rate_interval])))`, legend: "p99 {{operation}}"},
		},
	},
	{
		title:       "Requests to Neutron at a time",
		description: "The limit, which adapts to the load of Neutron, and the requests that are in flight or wait. A limit far below -neutron-max-requests with waiting requests means that Neutron is slow or rejects requests.",
		unit:        "short",
		queries: []query{
			{expr: `samplecrd_neutron_request_limit{SELECT}`, legend: "limit {{pod}} {{instance}}"},
			{expr: `samplecrd_neutron_requests_in_flight{SELECT}`, legend: "in flight {{pod}} {{instance}}"},
			{expr: `samplecrd_neutron_requests_waiting{SELECT}`, legend: "waiting {{pod}} {{instance}}"},
		},
	},
	{
		title:       "Age of the cache of Neutron's state",
		description: "Time since the last successful refresh, current interval between refreshes, and duration of the last refresh. The age normally rises from 0 to the interval.",
		unit:        "s",
		queries: []query{
			{expr: `time() - (samplecrd_neutron_cache_last_success_timestamp_seconds{SELECT} > 0)`, legend: "age {{pod}} {{instance}}"},
			{expr: `samplecrd_neutron_cache_period_seconds{SELECT}`, legend: "period {{pod}} {{instance}}"},
			{expr: `samplecrd_neutron_cache_refresh_duration_seconds{SELECT}`, legend: "duration {{pod}} {{instance}}"},
		},
	},
	{
		title:       "Size of the cache of Neutron's state",
		description: "Objects in the cache, including networks of other owners.",
		unit:        "short",
		queries:     []query{{expr: `max by (namespace, kind) (samplecrd_neutron_cache_objects{SELECT})`, legend: "{{kind}} {{namespace}}"}},
	},
	{
		title:       "Refreshes of the cache of Neutron's state",
		description: "Successful and failed refreshes in five minutes.",
		unit:        "short",
		queries:     []query{{expr: `sum by (result) (increase(samplecrd_neutron_cache_refreshes_total{SELECT}[5m]))`, legend: "{{result}}"}},
	},
	{
		title:       "Drift and orphans",
		description: "Changes in Neutron by others that were detected and reverted in five minutes, and networks with an owner marker but without a Network object. Those above -max-orphan-deletions are not deleted.",
		unit:        "short",
		queries: []query{
			{expr: `sum(increase(samplecrd_drift_detected_total{SELECT}[5m]))`, legend: "drift detected"},
			{expr: `sum(increase(samplecrd_drift_repaired_total{SELECT}[5m]))`, legend: "drift reverted"},
			{expr: `max by (namespace) (samplecrd_orphans{SELECT})`, legend: "orphans {{namespace}}"},
			{expr: `max by (namespace) (samplecrd_orphan_deletions_paused{SELECT})`, legend: "orphans not deleted {{namespace}}"},
		},
	},
	{
		title:       "Requests to the API server",
		description: "Requests per second, by method and code. The code is <error> if there was no response. A 409 is a conflict, which is normal. The right axis shows p99 of the duration.",
		unit:        "reqps",
		queries: []query{
			{expr: `sum by (method, code) (rate(rest_client_requests_total{SELECT}[$__rate_interval]))`, legend: "{{method}} {{code}}"},
			{expr: `histogram_quantile(0.99, sum by (le) (rate(rest_client_request_duration_seconds_bucket{SELECT}[$__rate_interval])))`, legend: "p99"},
		},
		more: onTheRight("B", "s"),
	},
	{
		title:       "Memory and CPU",
		description: "Resident memory and Go heap. The right axis shows the CPU usage.",
		unit:        "bytes",
		queries: []query{
			{expr: `process_resident_memory_bytes{SELECT}`, legend: "resident {{pod}} {{instance}}"},
			{expr: `go_memstats_heap_inuse_bytes{SELECT}`, legend: "heap {{pod}} {{instance}}"},
			{expr: `rate(process_cpu_seconds_total{SELECT}[$__rate_interval])`, legend: "CPU {{pod}} {{instance}}"},
		},
		more: onTheRight("C", "none"),
	},
}

// quantiles are queries for quantiles of a histogram.
func quantiles(histogram, window, prefix string, quantiles ...string) (out []query) {
	for _, q := range quantiles {
		out = append(out, query{
			expr:   `histogram_quantile(` + q + `, sum by (le) (rate(` + histogram + `_bucket{SELECT` + queueName(histogram) + `}[` + window + `])))`,
			legend: prefix + "p" + q[len("0."):],
		})
	}
	return out
}

// queueName chooses our queue among those that the process may have.
func queueName(metric string) string {
	if len(metric) > len("workqueue") && metric[:len("workqueue")] == "workqueue" {
		return `, name="Networks"`
	}
	return ""
}

// leaderStates shows the states of the leader election in words.
func leaderStates(panel object) {
	panel["fieldConfig"] = object{"defaults": object{
		"unit": "none", "custom": object{"fillOpacity": 70, "lineWidth": 0},
		"mappings": []object{{"type": "value", "options": object{
			"0": object{"text": "waits", "color": "blue", "index": 0},
			"1": object{"text": "leads", "color": "green", "index": 1},
		}}},
	}, "overrides": []object{}}
	panel["options"] = object{"mergeValues": true, "showValue": "auto", "alignValue": "left", "rowHeight": 0.8, "legend": object{"showLegend": false, "displayMode": "list", "placement": "bottom", "calcs": []string{}}, "tooltip": object{"mode": "single", "sort": "none"}}
}

// instanceColumns makes one row of each instance, and names the columns.
func instanceColumns(panel object) {
	panel["options"] = object{"showHeader": true, "cellHeight": "sm"}
	panel["transformations"] = []object{
		{"id": "merge", "options": object{}},
		{"id": "organize", "options": object{
			"excludeByName": object{"Time": true, "job": true, "endpoint": true, "service": true, "container": true},
			"renameByName":  object{"Value #A": "running for", "Value #B": "restarts", "go_version": "Go"},
			"indexByName":   object{"namespace": 0, "pod": 1, "instance": 2, "version": 3, "go_version": 4, "Value #A": 5, "Value #B": 6},
		}},
	}
	panel["fieldConfig"] = object{"defaults": object{"unit": "none", "custom": object{"align": "auto"}}, "overrides": []object{
		override("byName", "running for", property("unit", "s"), property("decimals", 1)),
		override("byName", "restarts", property("decimals", 0)),
	}}
}

// onTheRight gives the series of a query an axis of their own.
func onTheRight(refID, unit string) func(object) {
	return func(panel object) {
		panel["fieldConfig"].(object)["overrides"] = []object{
			override("byFrameRefID", refID, property("unit", unit), property("custom.axisPlacement", "right")),
		}
	}
}

func override(by, what string, properties ...object) object {
	return object{"matcher": object{"id": by, "options": what}, "properties": properties}
}

func property(id string, value any) object {
	return object{"id": id, "value": value}
}
