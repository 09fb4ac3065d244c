package main

// panels are the panels of the dashboard, in the order of an operator's questions:
// the state of Networks, the leader, the queue, Neutron, drift, the API server,
// resources.
var panels = []panel{
	{
		title:       "State of Networks",
		description: "Networks by the reason of their condition Ready. All but Provisioned wait for something: the README's table says for what.",
		unit:        "short", stacked: true, width: 12,
		queries: []query{{expr: `sum by (ready, reason) (max by (namespace, ready, reason) (samplecrd_networks{SELECT}))`, legend: "{{reason}} (Ready={{ready}})"}},
	},
	{
		title:       "Time to Ready",
		description: "From the creation of a Network until it was Ready for the first time, of those that became Ready within the half hour before.",
		unit:        "s", width: 12,
		queries: quantiles("samplecrd_network_ready_duration_seconds", "30m", "", "0.50", "0.90", "0.99"),
	},
	{
		title:       "Leader",
		description: "Which instance leads, and which stands by. Empty where there is no leader election.",
		kind:        "state-timeline", unit: "none",
		queries: []query{{expr: `max by (namespace, pod, instance) (leader_election_master_status{SELECT})`, legend: "{{pod}} {{instance}}"}},
		more:    leaderStates,
	},
	{
		title:       "Instances",
		description: "What runs: its version, for how long, and how often it restarted within the time that is shown.",
		kind:        "table", unit: "none", width: 16,
		queries: []query{
			{expr: `(time() - process_start_time_seconds{SELECT}) * on (namespace, pod, instance) group_left (version, go_version) max by (namespace, pod, instance, version, go_version) (samplecrd_build_info{SELECT})`, instant: true},
			{expr: `changes(process_start_time_seconds{SELECT}[$__range]) * on (namespace, pod, instance) group_left (version, go_version) max by (namespace, pod, instance, version, go_version) (samplecrd_build_info{SELECT})`, instant: true},
		},
		more: instanceColumns,
	},
	{
		title:       "Queue",
		description: "Networks that wait for a worker. It is empty most of the time.",
		unit:        "short",
		queries:     []query{{expr: `workqueue_depth{SELECT, name="Networks"}`, legend: "{{pod}} {{instance}}"}},
	},
	{
		title:       "Time in the queue and at work",
		description: "How long a Network waits for a worker, how long a worker is at it, and how long the longest that is not done has been going on.",
		unit:        "s",
		queries: append(append(
			quantiles("workqueue_queue_duration_seconds", "$__rate_interval", "waiting ", "0.50", "0.99"),
			quantiles("workqueue_work_duration_seconds", "$__rate_interval", "working ", "0.50", "0.99")...),
			query{expr: `max(workqueue_longest_running_processor_seconds{SELECT, name="Networks"})`, legend: "longest that runs"},
			query{expr: `max(workqueue_unfinished_work_seconds{SELECT, name="Networks"})`, legend: "all that run, together"}),
	},
	{
		title:       "Into the queue",
		description: "How many Networks are put into the queue in a second, and how many of those again: after a failure, or to have another look.",
		unit:        "ops",
		queries: []query{
			{expr: `sum(rate(workqueue_adds_total{SELECT, name="Networks"}[$__rate_interval]))`, legend: "added"},
			{expr: `sum(rate(workqueue_retries_total{SELECT, name="Networks"}[$__rate_interval]))`, legend: "tried again"},
		},
	},
	{
		title:       "Requests to Neutron",
		description: "Requests in a second, by what they are for. An idle system lists networks and subnets, and nothing else.",
		unit:        "reqps", stacked: true,
		queries: []query{{expr: `sum by (operation) (rate(samplecrd_neutron_request_duration_seconds_count{SELECT}[$__rate_interval]))`, legend: "{{operation}}"}},
	},
	{
		title:       "Requests to Neutron that did not succeed",
		description: "By what they are for, and the code of the answer; none where no answer came. 4xx is often an answer to a wish that cannot be met, 401 a token that ran out and is renewed.",
		unit:        "reqps", stacked: true,
		queries: []query{{expr: `sum by (operation, code) (rate(samplecrd_neutron_request_duration_seconds_count{SELECT, code!~"2.."}[$__rate_interval]))`, legend: "{{operation}}: {{code}}"}},
	},
	{
		title:       "Duration of requests to Neutron",
		description: "Half of the requests are quicker than p50, all but one in a hundred quicker than p99.",
		unit:        "s",
		queries: []query{
			{expr: `histogram_quantile(0.5, sum by (operation, le) (rate(samplecrd_neutron_request_duration_seconds_bucket{SELECT}[$__rate_interval])))`, legend: "p50 {{operation}}"},
			{expr: `histogram_quantile(0.99, sum by (operation, le) (rate(samplecrd_neutron_request_duration_seconds_bucket{SELECT}[$__rate_interval])))`, legend: "p99 {{operation}}"},
		},
	},
	{
		title:       "Age of the mirror",
		description: "How long ago it was last listed what Neutron has, the present pause between two lists, and how long the last one took. The age saws between 0 and the period.",
		unit:        "s",
		queries: []query{
			{expr: `time() - (samplecrd_mirror_last_success_timestamp_seconds{SELECT} > 0)`, legend: "age {{pod}} {{instance}}"},
			{expr: `samplecrd_mirror_period_seconds{SELECT}`, legend: "period {{pod}} {{instance}}"},
			{expr: `samplecrd_mirror_refresh_duration_seconds{SELECT}`, legend: "duration {{pod}} {{instance}}"},
		},
	},
	{
		title:       "Size of the mirror",
		description: "What Neutron had when it was last listed, others' networks included.",
		unit:        "short",
		queries:     []query{{expr: `max by (namespace, kind) (samplecrd_mirror_objects{SELECT})`, legend: "{{kind}} {{namespace}}"}},
	},
	{
		title:       "Lists of all that Neutron has",
		description: "Lists in five minutes that succeeded and that failed.",
		unit:        "short",
		queries:     []query{{expr: `sum by (result) (increase(samplecrd_mirror_refreshes_total{SELECT}[5m]))`, legend: "{{result}}"}},
	},
	{
		title:       "Drift and orphans",
		description: "What somebody else changed in Neutron, found and put right within five minutes; and networks of ours there whose Network object is gone.",
		unit:        "short",
		queries: []query{
			{expr: `sum(increase(samplecrd_drift_detected_total{SELECT}[5m]))`, legend: "drift found"},
			{expr: `sum(increase(samplecrd_drift_repaired_total{SELECT}[5m]))`, legend: "drift put right"},
			{expr: `max by (namespace) (samplecrd_orphans{SELECT})`, legend: "orphans {{namespace}}"},
		},
	},
	{
		title:       "Requests to the API server",
		description: "Requests in a second, by method and code; <error> where no answer came. A 409 is a conflict, and normal. p99 of their duration is on the right.",
		unit:        "reqps",
		queries: []query{
			{expr: `sum by (method, code) (rate(rest_client_requests_total{SELECT}[$__rate_interval]))`, legend: "{{method}} {{code}}"},
			{expr: `histogram_quantile(0.99, sum by (le) (rate(rest_client_request_duration_seconds_bucket{SELECT}[$__rate_interval])))`, legend: "p99"},
		},
		more: onTheRight("B", "s"),
	},
	{
		title:       "Memory and CPU",
		description: "Resident memory, and what of it is in use by the heap of Go; CPUs in use are on the right.",
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
			"0": object{"text": "stands by", "color": "blue", "index": 0},
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
