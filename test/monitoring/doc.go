// Package monitoring tests deploy/monitoring: the rules with promtool, and rules and
// dashboard with a real Prometheus that scrapes a real controller.
package monitoring
