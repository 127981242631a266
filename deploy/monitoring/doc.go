// Package monitoring is the alerts of sluice for Prometheus (rules.yaml) and a board for
// Grafana (board.json). It holds no code: its tests parse every expression as Prometheus
// would, and hold the metrics and labels in them to those that the controller has, and each alert to
// its section in ../docs/alerts.md.
package monitoring
