// SPDX-License-Identifier: Apache-2.0

// Command dashboard writes the Grafana dashboard in config/grafana. tools/alerts checks that the series
// in its queries exist.
//
//	panels.go  panels and queries
package main

import (
	"encoding/json"
	"fmt"
	"os"
)

// dashboardFile is the path of the dashboard, relative to the repository root.
const dashboardFile = "config/grafana/weir.json"

func main() {
	if err := writeDashboard(dashboardFile); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func writeDashboard(name string) error {
	data, err := renderDashboard()
	if err != nil {
		return err
	}
	return os.WriteFile(name, data, 0o644) //nolint:gosec // it is published
}

// The columns of Grafana's grid, and the height of a panel in rows.
const (
	gridWidth   = 24
	panelHeight = 8
)

// object is a JSON object; encoding/json sorts its keys, so the output is deterministic.
type object = map[string]any

func renderDashboard() ([]byte, error) {
	var out []object
	y, id := 0, 0
	for _, row := range dashboardRows {
		id++
		out = append(out, object{"id": id, "type": "row", "title": row.title, "collapsed": false, "gridPos": gridPosition(0, y, gridWidth, 1), "panels": []object{}})
		y++
		each := gridWidth / len(row.panels)
		for i, p := range row.panels {
			id++
			out = append(out, p.encode(id, gridPosition(i*each, y, each, panelHeight)))
		}
		y += panelHeight
	}
	data, err := json.MarshalIndent(object{
		"title": "Weir", "uid": "weir", "schemaVersion": 39, "version": 1, "editable": true, "refresh": "30s",
		"tags": []string{"weir", "azure"}, "time": object{"from": "now-6h", "to": "now"}, "panels": out,
		"templating": object{"list": []object{{
			"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus",
		}}},
	}, "", "  ")
	return append(data, '\n'), err
}

func gridPosition(x, y, w, h int) object { return object{"x": x, "y": y, "w": w, "h": h} }

func (p panel) encode(id int, where object) object {
	source := object{"type": "prometheus", "uid": "${datasource}"}
	targets := make([]object, len(p.queries))
	for i, q := range p.queries {
		targets[i] = object{"refId": string(rune('A' + i)), "datasource": source, "expr": q.expr, "legendFormat": q.legend, "instant": p.kind == "table"}
		if p.kind == "table" {
			targets[i]["format"] = "table"
		}
	}
	return object{
		"id": id, "type": p.kind, "title": p.title, "description": p.description, "datasource": source, "gridPos": where, "targets": targets,
		"fieldConfig": object{"defaults": object{"unit": p.unit, "min": 0}, "overrides": []object{}},
		"options":     object{},
	}
}
